// Take the survey page in headless Chromium: keys, buttons, back, reload, download, next person; no page error, no request.
// usage: node tests/survey.mjs /absolute/page.html /absolute/answers.csv
import { chromium } from 'playwright-core';
import { pathToFileURL } from 'node:url';
const b = await chromium.launch({ executablePath: process.env.CHROMIUM || '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'] });
try {
  const p = await b.newPage(), errors = [], requests = [], ok = {};
  p.on('pageerror', e => errors.push(String(e)));
  p.on('console', m => { if (m.type() === 'error') errors.push(m.text()); });
  p.on('request', r => { if (!/^(file|data|blob):/.test(r.url())) requests.push(r.url()); });
  p.on('dialog', d => d.accept());
  await p.goto(pathToFileURL(process.argv[2]).href);
  const n = +await p.locator('#bar').getAttribute('max'), at = async () => +await p.locator('#bar').evaluate(e => e.value);
  const picture = () => p.locator('#picture').getAttribute('src'), first = await picture();
  await p.keyboard.press('3'); await p.keyboard.press('7');
  ok.keys = await at() === 2 && await picture() !== first;
  await p.locator('#buttons button').nth(5).click();
  ok.button = await at() === 3;
  await p.keyboard.press('Backspace'); await p.locator('#back').click();
  ok.back = await at() === 1;
  await p.keyboard.press('x'); await p.keyboard.press('Control+4');
  ok.others = await at() === 1;
  await p.reload();
  ok.resumes = await at() === 1 && (await p.locator('#status').textContent()).startsWith(`Image 2 of ${n}`);
  for (let i = 1; i < n; i++) await p.keyboard.press(String(i % 10));
  ok.done = (await p.locator('#status').textContent()).startsWith('Done');
  await p.keyboard.press('1');
  ok.stops = await at() === n;
  const [file] = await Promise.all([p.waitForEvent('download'), p.locator('#save').click()]);
  await file.saveAs(process.argv[3]);
  ok.named = /^answers-[0-9a-f]{12}-[0-9a-f]{8}\.csv$/.test(file.suggestedFilename());
  await p.locator('#anew').click();
  ok.anew = await at() === 0;
  ok.errors = !errors.length; ok.requests = !requests.length;
  console.log(JSON.stringify({ ...ok, ...(errors.length && { messages: errors }) }));
  process.exitCode = Object.values(ok).every(Boolean) ? 0 : 1;
} finally { await b.close(); }
