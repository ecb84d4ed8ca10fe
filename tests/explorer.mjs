// Ask "what if" in a live JupyterLab under headless Chromium, by keyboard and by mouse; axe, a phone's width and the dark theme.
// usage: node tests/explorer.mjs URL [folder for screenshots]
import { chromium } from 'playwright-core';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
const [url, shots] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const b = await chromium.launch({ executablePath: process.env.CHROMIUM || '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'] });
try {
  let panel;
  const p = await b.newPage({ viewport: { width: 1440, height: 1100 }, acceptDownloads: true }), errors = [], outside = [], ok = {};
  p.on('pageerror', e => errors.push(String(e)));
  p.on('dialog', d => { errors.push(d.message()); d.dismiss(); });
  p.on('request', r => { if (!/^(data:|blob:|(http|ws):\/\/127\.0\.0\.1:)/.test(r.url())) outside.push(r.url()); });
  const shot = async name => shots && panel.screenshot({ path: `${shots}/${name}.png` });
  await p.goto(url);
  await p.locator('.jp-Notebook .jp-Cell').first().waitFor({ timeout: 90000 });
  await p.getByText(/\| Idle/).first().waitFor({ timeout: 60000 });
  const menu = async (...names) => { for (const name of names) { const at = p.locator('.lm-MenuBar-itemLabel:visible, .lm-Menu-itemLabel:visible').filter({ hasText: new RegExp(`^${name}$`) }).last(); await at.click(); await p.waitForTimeout(250); } };
  await menu('Run', 'Run All Cells');
  await p.locator('.jp-Dialog .jp-mod-accept').click({ timeout: 2000 }).catch(() => {});
  panel = p.locator('.cfx-panel').first();
  await panel.locator('.cfx-status').waitFor({ timeout: 120000 });
  await panel.evaluate(e => e.scrollIntoView({ block: 'start' }));
  const text = async selector => (await panel.locator(selector).allInnerTexts()).join(' ');
  const until = async (name, test) => { for (let i = 0; i < 100 && !ok[name]; i++) { ok[name] = !!(await test()); if (!ok[name]) await p.waitForTimeout(100); } return ok[name]; };
  const settled = async () => { for (let i = 0; i < 100 && await panel.locator('.cfx-busy').count(); i++) await p.waitForTimeout(100); };
  const changed = async () => panel.locator('.cfx-changes tbody th').allInnerTexts();

  // by keyboard: next refused, then Tab to the lock of what would change, and Space
  await panel.getByRole('button', { name: 'Next refused' }).focus();
  await p.keyboard.press('Enter');
  await until('refused', async () => /does not give/.test(await text('.cfx')) && (await changed()).length);
  await settled();
  const first = (await changed())[0];
  for (let i = 0; i < 80; i++) {
    await p.keyboard.press('Tab');
    if (await p.evaluate(name => document.activeElement.title === `Lock ${name} as it is`, first)) break;
  }
  await p.keyboard.press('Space');
  await until('locked', async () => !(await changed()).includes(first) && /probab|Now|answer/.test(await text('.cfx-status')));
  ok.live = await panel.locator('.cfx-status[role=status][aria-live=polite]').count() === 1;
  await settled();
  await p.waitForTimeout(shots ? 1500 : 0); // the order and the other answers, for the picture
  if (shots) await panel.screenshot({ path: `${shots}/explorer.png` });

  // a slider by keyboard and by mouse moves the fields beside it
  const line = panel.locator('.cfx-line').filter({ has: p.locator('.cfx-lock', { hasText: 'income' }) }), handle = line.locator('.noUi-handle'), fields = line.locator('input[type=number]');
  const least = async () => +await fields.first().inputValue(), low = await least();
  await handle.first().focus();
  for (let i = 0; i < 3; i++) await p.keyboard.press('ArrowRight');
  await until('keys', async () => await least() > low);
  const box = await handle.nth(1).boundingBox(), most = +await fields.nth(1).inputValue();
  await p.mouse.move(box.x + box.width / 2, box.y + box.height / 2); await p.mouse.down(); await p.mouse.move(box.x - 30, box.y + box.height / 2, { steps: 6 }); await p.mouse.up();
  await until('drag', async () => +await fields.nth(1).inputValue() < most);
  await settled();

  // a level, a value by hand, and all open again
  const level = panel.getByRole('checkbox', { name: 'owns' });
  await level.click();
  await until('level', async () => !await level.isChecked());
  await fields.last().fill('90000'); await p.keyboard.press('Tab');
  await until('hand', async () => /By hand: \d+% → \d+%/.test(await text('.cfx-hand')));
  await panel.getByRole('button', { name: 'Open everything' }).click();
  await until('open', async () => await level.isChecked() && await least() === low && (await changed()).includes(first));
  await settled();

  // another answer, keep two, save them
  const one = await text('.cfx-changes');
  await panel.getByLabel('answer', { exact: true }).selectOption({ label: 'second' });
  await until('second', async () => await text('.cfx-changes') !== one);
  const keep = panel.getByRole('button', { name: 'Keep this answer' });
  await keep.click(); await keep.click();
  await until('kept', async () => /Save 2 kept/.test(await text('a')));
  const [file] = await Promise.all([p.waitForEvent('download'), panel.getByText('Save 2 kept as CSV').click()]);
  ok.file = file.suggestedFilename() === 'answers.csv' && readFileSync(await file.path(), 'utf8').trim().split('\n').length === 3;

  // a row by its index
  await panel.getByLabel('row', { exact: true }).fill('<img src=x onerror=alert(1)>'); await p.keyboard.press('Enter');
  await until('found', async () => /Row <img src/.test(await text('.cfx')));
  await settled();

  // axe: ipywidgets names no handle of a slider, so that one rule is let through there, and nowhere else
  await p.evaluate(axe);
  const findings = () => p.evaluate(async () => (await window.axe.run('.cfx-panel', { preload: false, resultTypes: ['violations'] })).violations.flatMap(v => v.nodes.filter(n => !(v.id === 'aria-input-field-name' && /noUi-handle/.test(n.html))).map(n => `${v.id}: ${n.html.slice(0, 120)}`)));
  const light = await findings();
  await menu('Settings', 'Theme', 'JupyterLab Dark');
  await p.locator('body[data-jp-theme-light=false]').waitFor({ state: 'attached', timeout: 20000 });
  await p.waitForTimeout(800);
  const dark = await findings();
  await shot('explorer_dark');
  ok.axe = !light.length && !dark.length;

  // a phone: nothing sticks out of the panel
  await p.keyboard.press('Escape'); await p.keyboard.press('Control+b'); // without the side bar
  await p.setViewportSize({ width: 390, height: 844 });
  await p.waitForTimeout(1000);
  const wide = await panel.evaluate(e => { const edge = e.getBoundingClientRect().right + 1; return [...e.querySelectorAll('*')].filter(v => !v.closest('.cfx-wide *') && v.getBoundingClientRect().width && v.getBoundingClientRect().right > edge).map(v => `${v.className} ${Math.round(v.getBoundingClientRect().right - edge)}`).slice(0, 5); });
  ok.phone = !wide.length;
  ok.errors = !errors.length; ok.requests = !outside.length;
  console.log(JSON.stringify(ok), errors.join(' '), outside.join(' '), light.join(' | '), dark.join(' | '), wide.join(' | '));
  process.exitCode = Object.values(ok).every(Boolean) ? 0 : 1;
} finally { await b.close(); }
