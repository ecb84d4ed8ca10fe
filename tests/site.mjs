// Walk over every page of the built site in headless Chromium, as a reader with a mouse, a phone, dark glasses and a screen reader would.
// usage: node tests/site.mjs _docs [--shots DIR] [--only PART] ; prints JSON: {pages, steppers, problems: [...]}
import { chromium } from 'playwright-core';
import { readFileSync, readdirSync, existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { createRequire } from 'node:module';

const root = resolve(process.argv[2]), option = name => { const i = process.argv.indexOf(name); return i < 0 ? null : process.argv[i + 1]; };
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const files = readdirSync(root, { recursive: true }).filter(f => f.endsWith('.html') && !f.startsWith('_') && !/^(search|notebooks|pagefind)/.test(f) && !/http-equiv="refresh"/.test(readFileSync(join(root, f), 'utf8').slice(0, 400))).filter(f => !option('--only') || f.includes(option('--only'))).sort();
const ids = new Map(), problems = [], say = (page, what) => problems.push(`${page}: ${what}`);
const anchors = f => { if (!ids.has(f)) ids.set(f, new Set([...readFileSync(f, 'utf8').matchAll(/\sid="([^"]+)"/g)].map(m => m[1]))); return ids.get(f); };
const b = await chromium.launch({ executablePath: process.env.CHROMIUM || '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'] });

// Where every page stands: [page, door, …]
const places = readFileSync(join(dirname(fileURLToPath(import.meta.url)), '../docs/doors.tsv'), 'utf8').split('\n').slice(1).map(l => l.split('\t'));
const FOR_READERS = new Set(places.filter(l => ['Start', 'Guide', 'Paper', 'Research'].includes(l[1])).map(l => l[0]));

const settled = p => p.evaluate(() => window.MathJax?.startup?.promise).catch(() => null);
const wide = p => p.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

// Pages drawn: what may still change is a widget's picture, and what site.js mends 100 ms after the last change of the page.
const drawn = p => p.evaluate(() => Promise.all([new Promise(r => setTimeout(r, 130)), ...[...document.images].map(i => i.decode().catch(() => null))]));

// Contrast is a matter of a few dozen pairs of colours that thousands of words share. `palette` notes the pairs of a page that axe has not judged yet:
// the colour of a text, the grounds below it down to an opaque one, and whether it counts as large; with three elements each.
const judged = new Set();
const palette = (p, theme) => p.evaluate(([theme, known]) => {
  document.documentElement.dataset.theme = theme;
  const grounds = new Map([[null, '']]), fresh = new Map(), old = new Set(known);
  const ground = e => {
    if (grounds.has(e)) return grounds.get(e);
    const { backgroundColor: colour, backgroundImage: picture, opacity, filter } = getComputedStyle(e);
    const more = [picture, filter].filter(v => v !== 'none').concat(opacity === '1' ? [] : `at ${opacity}`), bare = !more.length && /,\s*0\)$/.test(colour);
    const rest = more.length || /rgba/.test(colour) ? ground(e.parentElement) : '';
    grounds.set(e, bare ? rest : [colour, ...more, rest].join(' '));
    return grounds.get(e);
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), words = new Map();
  for (let t; (t = texts.nextNode());) {
    const e = t.parentElement, code = e.localName === 'span' && e.parentElement.localName === 'pre' ? e.parentElement : null;
    if (!t.data.trim() || code && words.get(code)?.has(e.className)) continue;   // one word of each kind in a piece of code
    if (code) words.set(code, (words.get(code) ?? new Set()).add(e.className));
    if (!e.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    const s = getComputedStyle(e), size = parseFloat(s.fontSize), large = size >= 24 || size >= 18.66 && s.fontWeight >= 700;
    const pair = `${s.color} on ${ground(e)}${large ? ', large' : ''}${s.textShadow === 'none' ? '' : ', with a shadow'}`;
    if (old.has(pair)) continue;
    if (!fresh.has(pair)) fresh.set(pair, new Set());
    if (fresh.get(pair).size < 3) fresh.get(pair).add(e);
  }
  (window.fresh ??= {})[theme] = fresh;
}, [theme, [...judged]]);

// axe looks at every element of a page, and most are words of code: code whose colours are known becomes one text.
const plain = p => p.evaluate(() => {
  const shown = Object.values(window.fresh).flatMap(m => [...m.values()].flatMap(s => [...s]));
  document.querySelectorAll('.highlight pre').forEach(e => { if (!shown.some(s => s !== e && e.contains(s))) e.textContent = e.textContent; });
});

// Fresh pairs of a theme are given to axe. A pair is judged when one of its elements passed; one that fails is told again on every page.
const contrast = async (p, theme) => {
  const [passed, failed] = await p.evaluate(async theme => {
    const fresh = window.fresh[theme];
    if (!fresh.size) return [[], []];
    document.documentElement.dataset.theme = theme;
    const r = await window.axe.run({ include: [...fresh.values()].flatMap(s => [...s]) }, { preload: false, elementRef: true, runOnly: { type: 'rule', values: ['color-contrast'] } });
    const of = found => new Set(found.flatMap(v => v.nodes.map(n => n.element))), good = of(r.passes), bad = of(r.violations);
    const pairs = [...fresh].filter(([, s]) => [...s].some(e => good.has(e)) && ![...s].some(e => bad.has(e))).map(([pair]) => pair);
    return [pairs, r.violations.flatMap(v => v.nodes.map(n => `color-contrast: ${n.target} ${n.any[0].message}`))];
  }, theme);
  passed.forEach(pair => judged.add(pair));
  return failed;
};

// Letters that nobody can read on a phone: below 11 px, in what a page says; formulas have their own sizes.
const tiny = p => p.evaluate(() => {
  const found = new Set(), met = new Set(), texts = document.createTreeWalker(document.querySelector('article') ?? document.body, NodeFilter.SHOW_TEXT);
  for (let t; (t = texts.nextNode());) {
    const e = t.parentElement.closest('pre') ?? t.parentElement;   // code is looked at once
    if (met.has(e)) continue;
    met.add(e);
    const size = parseFloat(getComputedStyle(e).fontSize);
    if (size >= 11 || size === 0 || !t.data.trim() || e.closest('mjx-container, sup, sub, svg') || !e.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    found.add(`${size.toFixed(1)} px: ${t.data.trim().slice(0, 30)}`);
  }
  return [...found].slice(0, 3);
});

// Everything else that axe knows, its best practices too. The sidebar is the same everywhere, and is looked at with a page of each kind.
const WHOLE = ['index', 'masking', 'digits', 'bring_your_own_model', 'api-core', 'guide', 'gallery'];
const findings = (p, whole) => p.evaluate(async whole => {
  const values = window.axe._audit.rules.filter(r => r.enabled !== false && r.id !== 'color-contrast' && !r.tags.includes('experimental')).map(r => r.id);
  const r = await window.axe.run(whole ? document : { exclude: [['.bd-sidebar-primary']] }, { preload: false, resultTypes: ['violations'], runOnly: { type: 'rule', values } });
  return r.violations.map(v => `${v.id} (${v.nodes.length}): ${v.nodes[0].target} ${v.nodes[0].any?.[0]?.message ?? ''}`);
}, whole);

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

// Plots whose letters a phone shows at less than half their size, by how much they shrink.
const small = p => p.evaluate(() => [...document.querySelectorAll('.cell_output img[width]')].filter(i => i.clientWidth && i.clientWidth < .45 * parseFloat(i.getAttribute('width'))).map(i => (i.clientWidth / parseFloat(i.getAttribute('width'))).toFixed(2)));

// Code that is wider than its cell: the longest line of each. Folded cells are opened, and stay so for what follows.
const sideways = p => p.evaluate(() => {
  document.querySelectorAll('article details').forEach(d => { d.open = true; });
  const wide = [...document.querySelectorAll('article .highlight pre')].filter(e => !e.closest('.cell_output') && e.scrollWidth > e.clientWidth + 1);
  return wide.map(e => e.innerText.split('\n').reduce((a, l) => l.length > a.length ? l : a)).map(l => `${l.length} characters: ${l.trim().slice(0, 80)}`);
});

// Tables that are wider than their place, by their first row.
const cutTables = p => p.evaluate(() => [...document.querySelectorAll('article table')].filter(t => {
  let e = t.parentElement;
  while (e.tagName !== 'ARTICLE' && !(e.scrollWidth > e.clientWidth + 4 && getComputedStyle(e).overflowX !== 'visible')) e = e.parentElement;
  return e.tagName !== 'ARTICLE';
}).map(t => t.rows[0]?.innerText.slice(0, 60).replace(/\s+/g, ' ')));

// A page of a browser, and what it complained about since `log` was emptied.
async function opened(context) {
  const p = await context.newPage(), log = { seen: new Set(), weight: 0 };
  const local = r => fileURLToPath(new URL(r.url().split(/[?#]/)[0])), count = r => { if (/^file:/.test(r.url()) && !/_static/.test(r.url())) try { log.weight += statSync(local(r)).size; } catch { /* counted as missing */ } };
  await p.addInitScript(axe);
  await p.addInitScript(() => addEventListener('DOMContentLoaded', () => document.head.insertAdjacentHTML('beforeend', '<style>*, ::before, ::after { transition: none !important; }</style>')));   // colours are there at once
  p.on('console', m => { if (m.type() === 'error') log.seen.add(`console: ${m.text()}`); });
  p.on('pageerror', e => log.seen.add(`error: ${e}`));
  p.on('request', r => { if (!/^(file|data|blob):/.test(r.url())) log.seen.add(`outside request: ${r.url().slice(0, 120)}`); });
  p.on('requestfailed', r => log.seen.add(`missing: ${r.url().slice(-80)}`));
  p.on('requestfinished', count);
  return [p, log];
}

async function visit(p, log, f) {
  const name = f.replace(/\.html$/, ''), start = Date.now();
  Object.assign(log, { seen: new Set(), weight: 0 });
  try {
    await p.setViewportSize({ width: 1280, height: 900 });
    await p.goto(pathToFileURL(join(root, f)).href, { waitUntil: 'load' });
    await settled(p);
    if (await p.locator('.widget-hslider, .jupyter-widgets').count() === 0 && await p.locator('script[type="application/vnd.jupyter.widget-view+json"]').count())
      await p.waitForSelector('.jupyter-widgets', { timeout: 15000 }).catch(() => say(name, 'no widget appeared'));
    await drawn(p);
    const found = await p.evaluate(() => ({
      links: [...document.querySelectorAll('a[href]')].map(a => a.href),
      images: [...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src.slice(0, 80)),
      math: [document.querySelectorAll('.math').length, document.querySelectorAll('mjx-container').length, document.querySelectorAll('mjx-merror, [data-mjx-error]').length],
      raw: [...document.querySelectorAll('article :is(p, li, td, th, dd, h1, h2, h3)')].map(e => e.textContent.match(/\\(frac|sum|lVert|mathbb|circ)\b/)?.[0]).find(Boolean),
    }));
    checkLinks(name, found.links);
    found.links.filter(l => /\.invalid(\/|:|$)/.test(l)).forEach(l => say(name, `link that leads nowhere: ${l}`));
    found.images.forEach(i => say(name, `broken image ${i}`));
    if (found.raw) say(name, `math as it is typed: ${found.raw}`);
    if (found.math[1] < found.math[0] || found.math[2]) say(name, `math not rendered: ${found.math}`);
    if (FOR_READERS.has(name)) (await cutTables(p)).forEach(t => say(name, `a table is wider than its place at 1280 px: ${t}`));
    (await sideways(p)).forEach(l => say(name, `code scrolls sideways at 1280 px: ${l}`));
    if (log.weight > 3e6) say(name, `page of ${(log.weight / 1e6).toFixed(1)} MB`);
    await palette(p, 'dark');
    await palette(p, 'light');
    await plain(p);
    (await contrast(p, 'light')).forEach(v => say(name, `axe, light: ${v}`));
    (await findings(p, WHOLE.includes(name))).forEach(v => say(name, `axe: ${v}`));
    (await contrast(p, 'dark')).forEach(v => say(name, `axe, dark: ${v}`));
    await p.setViewportSize({ width: 390, height: 844 });
    await drawn(p);
    const over = await wide(p);
    (await small(p)).forEach(i => say(name, `a plot's letters shrink to ${i} on a phone`));
    (await tiny(p)).forEach(i => say(name, `letters of ${i} on a phone`));
    if (over > 0) say(name, `scrolls ${over} px sideways on a phone: ` + await p.evaluate(() => [...document.querySelectorAll('article *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1).slice(0, 3).map(e => e.tagName + '.' + e.className).join(' ')));
  } catch (e) { say(name, `failed: ${String(e).slice(0, 300)}`); }
  log.seen.forEach(s => say(name, s));
  process.stderr.write(`${name} ${((Date.now() - start) / 1000).toFixed(1)} s\n`);
  await p.goto('about:blank');
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

// Six doors above every page; the sidebar has the pages behind one of them alone, and what is folded there opens by keyboard.
async function doors(context, f, door) {
  const p = await context.newPage();
  await p.goto(pathToFileURL(join(root, f)).href);
  const bar = await p.locator('.bd-header .navbar-nav .nav-link:visible').allInnerTexts(), here = await p.locator('.bd-header .navbar-nav li.current .nav-link:visible').allInnerTexts();
  if (bar.join() !== 'Start,Guide,Reference,Paper,Research,The book' || here.join() !== door) say(f, `doors: ${bar}, and here is ${here}`);
  const other = new Set(places.filter(l => l[1] && l[1] !== door).map(l => l[0])), hrefs = await p.locator('.bd-sidebar-primary nav.bd-links a').evaluateAll(as => as.map(a => a.getAttribute('href')));
  const strange = hrefs.filter(h => other.has(h.replace('.html', '')));
  if (hrefs.length < 3 || strange.length) say(f, `sidebar: ${hrefs.length} pages, of another door ${strange}`);
  if (!await p.locator('.bd-sidebar-primary nav.bd-links .current.active').last().isVisible()) say(f, 'sidebar: the page itself is not shown');
  const fold = p.locator('.bd-sidebar-primary nav.bd-links details:not([open])').first();
  if (await fold.count()) {
    const one = await fold.elementHandle(), link = await (await one.$('a')), head = await one.$('summary');
    for (const shown of [true, false]) {
      await head.focus(); await p.keyboard.press('Enter');
      if (await link.isVisible() !== shown) say(f, `sidebar: Enter does not ${shown ? 'open' : 'close'} what is folded`);
    }
  }
  await p.close();
}

async function search(context) {
  const p = await context.newPage();
  await p.goto(pathToFileURL(join(root, 'search.html')).href + '?q=logit_gap');
  const hit = p.locator('#search-results li > a').first();
  await hit.waitFor({ timeout: 20000 }).catch(() => say('search', 'finds nothing for logit_gap'));
  const hits = await p.locator('#search-results li > a').evaluateAll(as => as.map(a => a.href));
  if (!hits.some(h => /goals/.test(h))) say('search', `logit_gap is not found in goals: ${hits.slice(0, 5)}`);
  await p.close();
}

async function shots(dir) {
  mkdirSync(dir, { recursive: true });
  for (const [what, width, height, scheme] of [['light', 1440, 1000, 'light'], ['dark', 1440, 1000, 'dark'], ['phone', 390, 844, 'light'], ['phone-dark', 390, 844, 'dark']]) {
    const c = await b.newContext({ viewport: { width, height }, colorScheme: scheme });
    for (const f of (option('--pages') ?? 'index,guide,gallery,reference,explain_a_loan').split(',')) {
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
    const size = f => statSync(join(root, f)).size, steppers = files.filter(f => /"_model_name": ?"StackModel"/.test(readFileSync(join(root, f), 'utf8')));
    const jobs = files.sort((f, g) => size(g) - size(f)).map(f => (c, p, log) => visit(p, log, f));   // the longest first: nobody waits for one at the end
    jobs.unshift(...steppers.slice(0, 4).map(f => c => drive(c, f).catch(e => say(f, `stepper: ${String(e).slice(0, 200)}`))));
    if (!option('--only')) jobs.unshift(c => doors(c, 'masking.html', 'The book'), c => doors(c, 'explain_a_loan.html', 'Guide'), search);
    const worker = async () => {
      const c = await b.newContext({ viewport: { width: 1280, height: 900 } }), [p, log] = await opened(c);
      for (let job; (job = jobs.shift());) await job(c, p, log);
      await c.close();
    };
    await Promise.all([worker(), worker(), worker()]);   // while one waits, two work
    if (option('--only')) console.error(problems.join('\n'));
    console.log(JSON.stringify({ pages: files.length, steppers, problems }, null, 1));
    process.exitCode = problems.length ? 1 : 0;
  }
} finally { await b.close(); }
