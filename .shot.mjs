import { chromium } from 'playwright-core';
const [page, out] = process.argv.slice(2);
const b = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });
for (const [w, scheme] of [[864, 'light'], [484, 'light'], [390, 'light'], [864, 'dark'], [390, 'dark']]) {
  const p = await b.newPage({ viewport: { width: w, height: 1000 }, colorScheme: scheme });
  p.on('pageerror', e => console.log('ERR', e.stack)); p.on('console', m => console.log(m.text()));
  await p.goto('file://' + page); await p.waitForTimeout(500);
  const cut = await p.evaluate(() => [...document.querySelectorAll('.gcf .line > *, .gcf button, .gcf select, .gcf .say, .gcf summary, .gcf .pane td, .gcf .pane th')].filter(e => e.offsetParent && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== 'inline').map(e => e.className + ' ' + e.textContent.slice(0, 40) + ' ' + e.scrollWidth + '>' + e.clientWidth));
  console.log(w, scheme, 'cells', await p.locator('.gcf .line > *').count(), 'cut', cut.length, cut.slice(0, 5).join(' | '), 'page', await p.evaluate(() => document.documentElement.scrollWidth));
  await p.screenshot({ path: `${out}_${w}_${scheme}.png`, fullPage: true });
}
await b.close();
