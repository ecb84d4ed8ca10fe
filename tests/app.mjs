// Visit the app twice under headless Chromium: pick, hold, slide, export, reload; then kill a visitor's process.
// usage: node tests/app.mjs ADDRESS [folder of screenshots]
import { chromium } from 'playwright-core';
import fs from 'node:fs';
const [address, shots] = process.argv.slice(2);
const axe = fs.readFileSync(new URL('../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');
const b = await chromium.launch({ executablePath: process.env.CHROMIUM || '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'] });
const errors = [], outside = [], seen = [], ok = {}, wait = 90000;
const until = async (test, p) => { for (let i = 0; i < 300; i++) { if (await test()) return true; await p.waitForTimeout(100); } return false; };
const visitor = async () => {
  const p = await (await b.newContext({ viewport: { width: 1300, height: 1000 }, acceptDownloads: true })).newPage();
  p.on('pageerror', e => errors.push(String(e)));
  p.on('console', m => { if (/Content Security Policy/.test(m.text())) errors.push(m.text()); });
  p.on('request', r => { if (!/^(data:|blob:|(http|ws):\/\/127\.0\.0\.1:)/.test(r.url())) outside.push(r.url()); });
  await p.goto(address, { waitUntil: 'commit' });
  return p;
};
const panel = p => p.getByRole('button', { name: 'Next refused' }).waitFor({ timeout: wait }).then(() => said(p));
const said = p => until(() => status(p), p);
const status = async p => await p.locator('.gcf.busy').count() ? '' : p.locator('.gcf [role=status]').innerText();
const kernel = p => p.evaluate(() => JSON.parse(document.getElementById('jupyter-config-data').textContent).kernelId);
const lock = (p, name) => p.locator(`.line[data-column="${name}"] .dir`);
const locked = async (p, name) => (await lock(p, name).getAttribute('class')).includes('stay');
const processes = id => fs.readdirSync('/proc').filter(n => /^\d+$/.test(n)).filter(n => { try { return fs.readFileSync(`/proc/${n}/cmdline`, 'utf8').includes(id); } catch { return false; } });
const look = async (p, name, width, colorScheme) => {
  await p.setViewportSize({ width, height: 1000 }); await p.emulateMedia({ colorScheme });
  await p.waitForTimeout(200);
  if (shots) await p.screenshot({ path: `${shots}/app-${name}.png`, fullPage: true });
  const found = await p.evaluate(() => axe.run());
  for (const v of found.violations) seen.push(`${name}: ${v.id}: ${v.nodes[0].html.slice(0, 200)}`);
  if (await p.evaluate(() => document.documentElement.scrollWidth > innerWidth)) seen.push(`${name}: scrolls sideways`);
};
try {
  const one = await visitor();
  ok.waits = await one.getByText('The panel starts').waitFor({ timeout: wait }).then(() => true);
  const two = await visitor();
  await two.getByText('The panel starts').waitFor({ timeout: wait });
  await two.evaluate(() => { const now = Date.now; Date.now = () => now() + 1e6; });   // a quarter of an hour later
  ok.late = await two.getByText('The panel has not come yet').waitFor({ timeout: wait }).then(() => true);
  await panel(one); await panel(two);
  ok.came = await until(async () => await two.getByRole('alert').innerText() === '', two);
  const begun = await two.getByLabel('row', { exact: true }).inputValue();
  ok.token = !one.url().includes('token') && !await one.getByText('The panel starts').isVisible();
  ok.heading = await one.locator('h1').innerText() === 'What if: <i>loans' && await one.locator('i', { hasText: 'loans' }).count() === 0;
  ok.sources = !(await one.content()).includes('_visitor');

  const row = one.getByLabel('row', { exact: true });            // pick, by keyboard
  await row.fill('7'); await row.press('Enter');
  ok.pick = await until(async () => /Row 7,/.test(await one.locator('body').innerText()), one);
  await one.getByRole('button', { name: 'Next refused' }).click();
  ok.refused = await until(async () => +await row.inputValue() > 7, one);
  await until(async () => /changes?: \w/.test(await status(one)), one);
  const column = (await status(one)).match(/changes?: (\w+)/)[1]; // lock what the answer changes
  for (let i = 0; i < 3; i++) await lock(one, column).click();
  ok.lock = await until(async () => { const now = await status(one); return now && await locked(one, column) && !now.includes(column); }, one);
  const handle = one.locator(`.line:not([data-column="${column}"]) input[type=range]:visible`).first(), start = +await handle.inputValue();
  await handle.focus();                                          // slide, by keyboard
  for (let i = 0; i < 3; i++) await one.keyboard.press('ArrowRight');
  ok.slide = await until(async () => +await handle.inputValue() > start && /By hand/.test(await one.locator('.by-hand').innerText()), one);

  await one.locator('.more > summary').click();
  await one.getByRole('button', { name: 'Keep this answer' }).click();
  const [file] = await Promise.all([one.waitForEvent('download'), one.locator('a[download]').click()]);
  const csv = fs.readFileSync(await file.path(), 'utf8').trim().split('\n');
  ok.export = csv.length === 2 && /income.*cf_row/.test(csv[0]) && csv[1].includes(column);

  await one.evaluate(axe);
  await look(one, 'light', 1300, 'light'); await look(one, 'phone', 390, 'light'); await look(one, 'dark', 1300, 'dark');
  ok.dark = await one.evaluate(() => getComputedStyle(document.body).backgroundColor) === 'rgb(17, 17, 17)';

  ok.apart = await kernel(one) !== await kernel(two) && !await locked(two, column) && await two.getByLabel('row', { exact: true }).inputValue() === begun
    && await two.locator('a[download]').count() === 0;

  const old = await kernel(one);                                 // reload: a fresh panel, and the old process goes
  await one.reload({ waitUntil: 'commit' }); await panel(one);
  ok.reload = await until(async () => await lock(one, column).count(), one) && !await locked(one, column) && await kernel(one) !== old && await until(() => !processes(old).length, one);

  ok.quiet = await two.getByRole('alert').innerText() === '';
  for (const pid of processes(await kernel(two))) process.kill(+pid, 'SIGKILL');
  ok.killed = await until(async () => /has ended/.test(await two.getByRole('alert').innerText()), two);
  ok.again = await two.getByRole('button', { name: 'Start a new panel' }).isVisible();
  await two.evaluate(axe); await look(two, 'killed', 1300, 'light');
  ok.alive = await one.getByRole('alert').innerText() === '';
  ok.errors = !errors.length; ok.requests = !outside.length; ok.looks = !seen.length;
  console.log(JSON.stringify(ok), [...errors, ...outside, ...seen].join('\n'));
  process.exitCode = Object.values(ok).every(Boolean) ? 0 : 1;
} finally { await b.close(); }
