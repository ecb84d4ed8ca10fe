// Walk over every page of the built site in headless Chromium, as a reader with a mouse, a phone, dark glasses and a screen reader would.
// usage: node tests/site.mjs _docs [--shots DIR] [--only PART] ; prints JSON: {pages, steppers, problems: [...]}
import { chromium } from 'playwright-core';
import { readFileSync, readdirSync, existsSync, mkdirSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { createRequire } from 'node:module';

const root = resolve(process.argv[2]), option = name => { const i = process.argv.indexOf(name); return i < 0 ? null : process.argv[i + 1]; };
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const files = readdirSync(root, { recursive: true }).filter(f => f.endsWith('.html') && !f.startsWith('_') && f !== 'search.html').filter(f => !option('--only') || f.includes(option('--only'))).sort();
const ids = new Map(), problems = [], say = (page, what) => problems.push(`${page}: ${what}`);
const anchors = f => { if (!ids.has(f)) ids.set(f, new Set([...readFileSync(f, 'utf8').matchAll(/\sid="([^"]+)"/g)].map(m => m[1]))); return ids.get(f); };
const b = await chromium.launch({ executablePath: process.env.CHROMIUM || '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'] });

const settled = p => p.evaluate(() => window.MathJax?.startup?.promise).catch(() => null);
const theme = (p, t) => p.evaluate(t => { document.body.dataset.theme = t; }, t);
const wide = p => p.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
// The colours of code come from one theme, so the contrast of its thousands of words is measured on some pages and left out on the others.
const COLOURED = ['index', 'masking', 'gradual', 'bring_your_own_model', 'api-core'];
const findings = async (p, whole, only) => (await p.evaluate(([whole, only]) => window.axe.run(whole ? document : { exclude: [['.highlight pre']] }, { preload: false, resultTypes: ['violations'], ...(only ? { runOnly: { type: 'rule', values: only } } : {}) })
  .then(r => r.violations.filter(v => ['serious', 'critical'].includes(v.impact)).map(v => `${v.id} (${v.nodes.length}): ${v.nodes[0].target} ${v.nodes[0].any?.[0]?.message ?? ''}`)), [whole, only]));

function checkLinks(name, links) {
  for (const href of new Set(links)) {
    const u = new URL(href);
    if (u.protocol !== 'file:') continue;
    const hash = decodeURIComponent(u.hash.slice(1)); u.hash = u.search = '';
    const f = fileURLToPath(u);
    if (!existsSync(f)) say(name, `broken link ${relative(root, f)}`);
    else if (hash && f.endsWith('.html') && !anchors(f).has(hash)) say(name, `no anchor #${hash} in ${relative(root, f)}`);
  }
}

// Code that is wider than its cell, folded cells too: the longest line of each.
const sideways = p => p.evaluate(() => {
  const folds = [...document.querySelectorAll('article details:not([open])')];
  folds.forEach(d => { d.open = true; });
  const wide = [...document.querySelectorAll('article .highlight pre')].filter(e => !e.closest('.cell_output') && e.scrollWidth > e.clientWidth + 1);
  const lines = wide.map(e => e.innerText.split('\n').reduce((a, l) => l.length > a.length ? l : a)).map(l => `${l.length} characters: ${l.trim().slice(0, 80)}`);
  folds.forEach(d => { d.open = false; });
  return lines;
});

async function visit(context, f) {
  const name = f.replace(/\.html$/, ''), p = await context.newPage(), seen = [], start = Date.now();
  let weight = 0;
  p.on('console', m => { if (m.type() === 'error') seen.push(`console: ${m.text()}`); });
  p.on('pageerror', e => seen.push(`error: ${e}`));
  p.on('request', r => { if (!/^(file|data|blob):/.test(r.url())) seen.push(`outside request: ${r.url().slice(0, 120)}`); });
  p.on('requestfailed', r => seen.push(`missing: ${r.url().slice(-80)}`));
  p.on('requestfinished', r => { if (/^file:/.test(r.url()) && !/_static/.test(r.url())) try { weight += readFileSync(fileURLToPath(new URL(r.url().split(/[?#]/)[0]))).length; } catch { /* counted as missing */ } });
  try {
    await p.goto(pathToFileURL(join(root, f)).href, { waitUntil: 'load' });
    await settled(p);
    if (await p.locator('.widget-hslider, .jupyter-widgets').count() === 0 && await p.locator('script[type="application/vnd.jupyter.widget-view+json"]').count())
      await p.waitForSelector('.jupyter-widgets', { timeout: 15000 }).catch(() => say(name, 'no widget appeared'));
    await p.waitForTimeout(250);
    const found = await p.evaluate(() => ({
      links: [...document.querySelectorAll('a[href]')].map(a => a.href),
      images: [...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src.slice(0, 80)),
      math: [document.querySelectorAll('.math').length, document.querySelectorAll('mjx-container').length, document.querySelectorAll('mjx-merror, [data-mjx-error]').length],
      raw: (document.querySelector('article')?.innerText ?? '').match(/\\(frac|sum|lVert|mathbb|circ)\b/)?.[0] ?? null,
    }));
    checkLinks(name, found.links);
    found.images.forEach(i => say(name, `broken image ${i}`));
    if (found.math[1] < found.math[0] || found.math[2]) say(name, `math not rendered: ${found.math}`);
    (await sideways(p)).forEach(l => say(name, `code scrolls sideways at 1280 px: ${l}`));
    if (weight > 3e6) say(name, `page of ${(weight / 1e6).toFixed(1)} MB`);
    await p.evaluate(axe);
    await theme(p, 'light');
    (await findings(p, COLOURED.includes(name))).forEach(v => say(name, `axe: ${v}`));
    await theme(p, 'dark');
    await p.waitForTimeout(300);   // colours fade over
    (await findings(p, COLOURED.includes(name), ['color-contrast'])).forEach(v => say(name, `axe, dark: ${v}`));
    await p.setViewportSize({ width: 390, height: 844 });
    await p.waitForTimeout(100);
    const over = await wide(p);
    if (over > 0) say(name, `scrolls ${over} px sideways on a phone: ` + await p.evaluate(() => [...document.querySelectorAll('article *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1).slice(0, 3).map(e => e.tagName + '.' + e.className).join(' ')));
  } catch (e) { say(name, `failed: ${String(e).slice(0, 300)}`); }
  [...new Set(seen)].forEach(s => say(name, s));
  process.stderr.write(`${name} ${((Date.now() - start) / 1000).toFixed(0)} s\n`);
  await p.close();
}

// The picture that is shown changes at every key, and comes back.
async function drive(context, f) {
  const p = await context.newPage();
  await p.goto(pathToFileURL(join(root, f)).href);
  const box = p.locator('.jupyter-widgets.widget-vbox:has(.noUi-handle)').first();
  await box.waitFor({ timeout: 20000 });
  const handle = box.locator('.noUi-handle').first(), last = +await handle.getAttribute('aria-valuemax'), shown = new Set();
  const look = async () => {
    await p.waitForTimeout(120);
    const now = await box.evaluate(e => { const i = [...e.querySelectorAll('img')].find(i => i.getBoundingClientRect().width > 0); return { picture: i && i.naturalWidth > 0 ? i.src : '', text: e.querySelector('[role=status]')?.textContent ?? '' }; });
    if (!now.picture) say(f, 'stepper shows no picture');
    shown.add(now.text);
  };
  await handle.focus(); await look();
  for (let i = 0; i < last; i++) { await p.keyboard.press('ArrowRight'); await look(); }
  if (shown.size !== last + 1) say(f, `stepper shows ${shown.size} different states of ${last + 1}`);
  for (let i = 0; i < last; i++) await p.keyboard.press('ArrowLeft');
  const at = +await handle.getAttribute('aria-valuenow');
  await box.locator('button').first().click(); await p.waitForTimeout(1600);
  if (!(+await handle.getAttribute('aria-valuenow') > at)) say(f, 'stepper does not play');
  await p.close();
}

// Groups of the sidebar fold: the group of the page is open, the others open and close by keyboard.
async function folds(context, f) {
  const p = await context.newPage();
  await p.goto(pathToFileURL(join(root, f)).href);
  const groups = p.locator('.sidebar-tree details.group'), open = await p.locator('.sidebar-tree details.group[open]').count();
  if (await groups.count() < 5 || open !== 1) say(f, `sidebar: ${open} of ${await groups.count()} groups open`);
  if (!await p.locator('.sidebar-tree details[open] .current-page').isVisible()) say(f, 'sidebar: the page itself is not shown');
  const other = p.locator('.sidebar-tree details.group:not([open])').first(), summary = await other.locator('summary').innerText();
  const group = groups.filter({ hasText: summary }), link = group.locator('a').first();
  if (await link.isVisible()) say(f, 'sidebar: a folded group shows its pages');
  for (const shown of [true, false]) {
    await group.locator('summary').focus(); await p.keyboard.press('Enter');
    if (await link.isVisible() !== shown) say(f, `sidebar: Enter does not ${shown ? 'open' : 'close'} "${summary}"`);
  }
  await p.close();
}

async function search(context) {
  const p = await context.newPage();
  await p.goto(pathToFileURL(join(root, 'search.html')).href + '?q=logit_gap');
  const hit = p.locator('#search-results li a').first();
  await hit.waitFor({ timeout: 20000 }).catch(() => say('search', 'finds nothing for logit_gap'));
  const hits = await p.locator('#search-results li a').evaluateAll(as => as.map(a => a.href));
  if (!hits.some(h => /losses/.test(h))) say('search', `logit_gap is not found in losses: ${hits.slice(0, 5)}`);
  await p.close();
}

async function shots(dir) {
  mkdirSync(dir, { recursive: true });
  for (const [what, width, height, scheme] of [['light', 1440, 1000, 'light'], ['dark', 1440, 1000, 'dark'], ['phone', 390, 844, 'light'], ['phone-dark', 390, 844, 'dark']]) {
    const c = await b.newContext({ viewport: { width, height }, colorScheme: scheme });
    for (const f of (option('--pages') ?? 'index,masking,fig5_pairs,api-core').split(',')) {
      const p = await c.newPage();
      await p.goto(pathToFileURL(join(root, f + '.html')).href); await settled(p); await p.waitForTimeout(800);
      await p.screenshot({ path: join(dir, `${f}-${what}.png`) });
      const h = await p.evaluate(() => document.documentElement.scrollHeight);
      if (h > height * 2) { await p.evaluate(y => scrollTo(0, y), height * 1.2); await p.waitForTimeout(150); await p.screenshot({ path: join(dir, `${f}-${what}-2.png`) }); }
      await p.close();
    }
    await c.close();
  }
}

try {
  if (option('--shots')) await shots(option('--shots'));
  else {
    const queue = [...files], worker = async () => { const c = await b.newContext({ viewport: { width: 1280, height: 900 } }); for (let f; (f = queue.shift());) await visit(c, f); await c.close(); };
    await Promise.all([worker(), worker()]);
    if (option('--only')) console.error(problems.join('\n'));
    const steppers = files.filter(f => /"_model_name": ?"StackModel"/.test(readFileSync(join(root, f), 'utf8')));
    const c = await b.newContext({ viewport: { width: 1280, height: 900 } });
    for (const f of steppers.slice(0, 4)) await drive(c, f).catch(e => say(f, `stepper: ${String(e).slice(0, 200)}`));
    if (!option('--only')) { await folds(c, 'masking.html'); await search(c); }
    console.log(JSON.stringify({ pages: files.length, steppers, problems }, null, 1));
    process.exitCode = problems.length ? 1 : 0;
  }
} finally { await b.close(); }
