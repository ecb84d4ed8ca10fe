// Run a notebook in a live JupyterLab under headless Chromium and step its widget by keyboard, drag and Play.
// usage: node tests/lab.mjs URL LAST [screenshot.png]
import { chromium } from 'playwright-core';
import { createHash } from 'node:crypto';
const [url, last, shot] = process.argv.slice(2);
const b = await chromium.launch({ executablePath: process.env.CHROMIUM || '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'] });
try {
  const p = await b.newPage({ viewport: { width: 1300, height: 1500 } }), errors = [], outside = [];
  p.on('pageerror', e => errors.push(String(e)));
  p.on('request', r => { if (!/^(data:|blob:|(http|ws):\/\/127\.0\.0\.1:)/.test(r.url())) outside.push(r.url()); });
  await p.goto(url);
  await p.locator('.jp-Notebook .jp-Cell').first().waitFor({ timeout: 90000 });
  await p.getByText(/\| Idle/).first().waitFor({ timeout: 60000 });
  await p.locator('.lm-MenuBar-itemLabel').filter({ hasText: /^Run$/ }).first().click();
  await p.getByText('Run All Cells', { exact: true }).first().click();
  await p.locator('.jp-Dialog .jp-mod-accept').click({ timeout: 2000 }).catch(() => {}); // only asked before the kernel is attached
  const knob = p.locator('.noUi-handle').first();
  await knob.waitFor({ timeout: 120000 });
  await knob.scrollIntoViewIfNeeded(); await p.waitForTimeout(800);
  const read = async () => +await p.locator('.widget-readout').first().innerText(), seen = new Set();
  const look = async () => { await p.waitForTimeout(250); seen.add(createHash('sha256').update(await p.locator('img.widget-image:visible').first().getAttribute('src') + await p.locator('img.widget-image:visible').first().screenshot().then(s => s.toString('base64'))).digest('hex')); return read(); };
  const ok = { start: await look() === 0 };
  await knob.focus();
  for (let i = 0; i < +last; i++) { await p.keyboard.press('ArrowRight'); await look(); }
  ok.keys = await read() === +last; ok.pictures = seen.size === +last + 1;
  if (shot) await p.screenshot({ path: shot });
  const box = await knob.boundingBox();
  await p.mouse.move(box.x + box.width / 2, box.y + box.height / 2); await p.mouse.down(); await p.mouse.move(box.x - 600, box.y + box.height / 2, { steps: 8 }); await p.mouse.up();
  ok.drag = await look() === 0;
  await p.locator('.widget-play button').first().click(); await p.waitForTimeout(2500);
  ok.play = await look() > 0;
  ok.errors = !errors.length; ok.requests = !outside.length;
  console.log(JSON.stringify(ok), errors.join(' '), outside.join(' '));
  process.exitCode = Object.values(ok).every(Boolean) ? 0 : 1;
} finally { await b.close(); }
