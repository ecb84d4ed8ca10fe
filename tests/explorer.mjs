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
  await p.addStyleTag({ content: '.Toastify { display: none }' });  // JupyterLab's own news
  const menu = async (...names) => { for (const name of names) { const at = p.locator('.lm-MenuBar-itemLabel:visible, .lm-Menu-itemLabel:visible').filter({ hasText: new RegExp(`^${name}$`) }).last(); await at.click(); await p.waitForTimeout(250); } };
  await menu('Run', 'Run All Cells');
  await p.locator('.jp-Dialog .jp-mod-accept').click({ timeout: 2000 }).catch(() => {});
  panel = p.locator('.gcf').first();
  await panel.locator('.say').waitFor({ timeout: 120000 });
  await panel.evaluate(e => e.scrollIntoView({ block: 'start' }));
  const text = async selector => (await panel.locator(selector).allInnerTexts()).join(' ');
  const until = async (name, test) => { for (let i = 0; i < 300 && !ok[name]; i++) { ok[name] = !!(await test()); if (!ok[name]) await p.waitForTimeout(100); } return ok[name]; };
  const settled = async () => { for (let i = 0; i < 300 && await p.locator('.gcf.busy').count(); i++) await p.waitForTimeout(100); };
  const changed = async () => panel.locator('.line.changed').evaluateAll(all => all.map(e => e.dataset.column));
  const line = name => panel.locator(`.line[data-column="${name}"]`), button = name => panel.getByRole('button', { name, exact: true });
  const cut = () => panel.evaluate(e => [...e.querySelectorAll('.line > *, button, select, .say, summary')].filter(v => v.offsetParent && v.scrollWidth > v.clientWidth + 1 && getComputedStyle(v).display !== 'inline').map(v => `${v.className} ${v.textContent.slice(0, 30)}`));
  await settled();

  // by keyboard: next refused, then Tab to the direction of what would change, and Space until it stays
  await button('Next refused').focus();
  await p.keyboard.press('Enter');
  await until('refused', async () => /not enough/.test(await text('.about')) && (await changed()).length);
  await settled();
  const first = (await changed())[0];
  for (let i = 0; i < 80; i++) {
    await p.keyboard.press('Tab');
    if (await p.evaluate(name => document.activeElement.matches('.dir') && document.activeElement.closest('.line').dataset.column === name, first)) break;
  }
  for (let i = 0; i < 4 && !/stays/.test(await line(first).locator('.dir').getAttribute('title')); i++) { await p.keyboard.press('Space'); await p.waitForTimeout(50); }
  await settled();
  await until('locked', async () => !(await changed()).includes(first) && /Now|attempt/.test(await text('.say')));
  ok.live = await panel.locator('.say[role=status][aria-live=polite]').count() === 1;
  if (shots) { await p.waitForTimeout(1500); await shot('explorer'); }

  // undo takes the lock back; opening everything does so as well
  await button('Undo').click(); await button('Undo').click(); await button('Undo').click();
  await settled();
  await until('undo', async () => (await changed()).includes(first));

  // a slider by keyboard and by mouse moves the needle, one question on its way at a time
  const knob = line('income').locator('input[type=range]'), field = line('income').locator('input[type=number]'), start = +await field.inputValue();
  await knob.focus();
  for (let i = 0; i < 3; i++) await p.keyboard.press('ArrowRight');
  await until('keys', async () => +await field.inputValue() > start && /By hand: .*% → .*%/.test(await text('.by-hand')));
  const box = await knob.boundingBox(), most = +await field.inputValue();
  await p.mouse.move(box.x + box.width / 3, box.y + box.height / 2); await p.mouse.down(); await p.mouse.move(box.x + box.width - 4, box.y + box.height / 2, { steps: 25 }); await p.mouse.up();
  await until('drag', async () => +await field.inputValue() > most);
  await settled();
  const waits = await p.evaluate(() => window.gcfNeedle.sort((a, b) => a - b)), needle = [waits[Math.floor(waits.length/2)], waits.at(-1)].map(Math.round);
  await line('income').getByRole('button', { name: 'not beyond' }).click();
  await until('limit', async () => /≤/.test(await line('income').locator('.was').innerText()));
  await line('housing').locator('select').selectOption({ index: 0 });
  await button('Open everything').click();
  await until('open', async () => !/≤/.test(await line('income').locator('.was').innerText()) && await text('.by-hand') === '' && (await changed()).includes(first));
  await settled();
  await button('Try the answer').click();
  await until('tried', async () => /That is enough/.test(await text('.by-hand')));
  await button('As it is').click();
  await settled();

  // another answer, keep two, save them; a state goes into a file and comes back
  const one = await changed();
  await panel.getByRole('tab', { name: 'Ways' }).click();
  await panel.getByLabel('answer', { exact: true }).selectOption({ label: 'second' });
  await settled();
  await until('second', async () => (await changed()).join() !== one.join());
  for (const tab of ['Reasons', 'Nearest real case', 'Letter', 'Order']) {
    await panel.getByRole('tab', { name: tab }).click();
    await until(`tab ${tab}`, async () => (await panel.locator('.pane').innerHTML()).length > 20);
  }
  await panel.locator('.more > summary').click();
  await button('Keep this answer').click(); await button('Keep this answer').click();
  await until('kept', async () => /Save 2 kept/.test(await text('a')));
  const [file] = await Promise.all([p.waitForEvent('download'), panel.getByText('Save 2 kept as CSV').click()]);
  ok.file = file.suggestedFilename() === 'answers.csv' && readFileSync(await file.path(), 'utf8').trim().split('\n').length === 3;
  const [state] = await Promise.all([p.waitForEvent('download'), button('Save this state').click()]), name = await text('.about');

  // a row by its index, and back by the file
  await panel.getByLabel('row', { exact: true }).fill('<img src=x onerror=alert(1)>'); await p.keyboard.press('Enter');
  await until('found', async () => /Row <img src/.test(await text('.about')));
  await settled();
  await panel.locator('input[type=file]').setInputFiles({ name: 'panel.json', mimeType: 'application/json', buffer: readFileSync(await state.path()) });
  await until('state', async () => await text('.about') === name);
  await settled();

  // axe, light and dark
  await p.evaluate(axe);
  const findings = () => p.evaluate(async () => (await window.axe.run('.gcf', { preload: false, resultTypes: ['violations'] })).violations.flatMap(v => v.nodes.map(n => `${v.id}: ${n.html.slice(0, 120)}`)));
  const light = await findings();
  await menu('Settings', 'Theme', 'JupyterLab Dark');
  await p.locator('body[data-jp-theme-light=false]').waitFor({ state: 'attached', timeout: 20000 });
  await p.waitForTimeout(800);
  const dark = await findings();
  await shot('explorer_dark');
  ok.axe = !light.length && !dark.length;

  // no cell is cut, from a wide page to a phone, and nothing sticks out of the panel
  await p.keyboard.press('Escape'); await p.keyboard.press('Control+b'); // without the side bar
  const seen = [];
  for (const width of [1280, 900, 390]) {
    await p.setViewportSize({ width, height: 844 });
    await p.waitForTimeout(700);
    seen.push(...(await cut()).map(v => `${width}: ${v}`));
  }
  ok.cut = !seen.length;
  const wide = await panel.evaluate(e => { const edge = e.getBoundingClientRect().right + 1; return [...e.querySelectorAll('*')].filter(v => !v.closest('.cfx-wide *') && v.getBoundingClientRect().width && v.getBoundingClientRect().right > edge).map(v => `${v.className} ${Math.round(v.getBoundingClientRect().right - edge)}`).slice(0, 5); });
  ok.phone = !wide.length;
  ok.errors = !errors.length; ok.requests = !outside.length;
  console.log(JSON.stringify(ok), 'needle ms', needle.join(), seen.join(' | '), errors.join(' '), outside.join(' '), light.join(' | '), dark.join(' | '), wide.join(' | '));
  process.exitCode = Object.values(ok).every(Boolean) ? 0 : 1;
} finally { await b.close(); }
