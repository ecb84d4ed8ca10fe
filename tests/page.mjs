// Drive a stepper page of its own by keyboard, drag and Play in headless Chromium; no page error, no request.
// usage: node tests/page.mjs /absolute/page.html
import { chromium } from 'playwright-core';
import { createHash } from 'node:crypto';
import { pathToFileURL } from 'node:url';
const b = await chromium.launch({ executablePath: process.env.CHROMIUM || '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'] });
try {
  const p = await b.newPage(), errors = [], requests = [];
  p.on('pageerror', e => errors.push(String(e)));
  p.on('request', r => { if (!/^(file|data):/.test(r.url())) requests.push(r.url()); });
  const page = pathToFileURL(process.argv[2]).href;
  await p.goto(page);
  const last = +await p.locator('#step').getAttribute('max'), seen = new Set();
  const look = async () => { seen.add(createHash('sha256').update(await p.locator('#picture').getAttribute('src')).digest('hex')); return +await p.locator('#step').inputValue(); };
  await look();
  await p.locator('#step').focus();
  for (let i = 0; i < last; i++) { await p.keyboard.press('ArrowRight'); await look(); }
  const ok = { keys: await look() === last, pictures: seen.size === last + 1 };
  const box = await p.locator('#step').boundingBox();
  await p.mouse.move(box.x + box.width - 8, box.y + box.height / 2); await p.mouse.down(); await p.mouse.move(box.x + 4, box.y + box.height / 2, { steps: 5 }); await p.mouse.up();
  ok.drag = await look() === 0;
  await p.locator('#play').click(); await p.waitForTimeout(1500); await p.locator('#play').click();
  ok.play = await look() > 0;
  ok.text = (await p.locator('#picture').getAttribute('alt')).startsWith('Step ');
  ok.errors = !errors.length; ok.requests = !requests.length;
  console.log(JSON.stringify(ok));
  process.exitCode = Object.values(ok).every(Boolean) ? 0 : 1;
} finally { await b.close(); }
