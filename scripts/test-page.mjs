// `npm run test:page`: the page of `serve` in real Chromium, with laya-tiny. Installs the Debian package where there is
// no browser, writes screenshots to the folder of the first argument (default: results/page), ends with a plain line
// `N passed, N failed`.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const root = fileURLToPath(new URL('..', import.meta.url));
const results = process.argv[2] ?? join(root, 'results', 'page');
const cache = process.env.LAYA_APPLE_CACHE ?? mkdtempSync(join(tmpdir(), 'laya-page-'));
const env = { ...process.env, LAYA_APPLE_CACHE: cache };
const cli = join(root, 'bin', 'laya-artifacts.js');
const BROWSERS = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/google-chrome'];

function browserPath() {
  const found = () => BROWSERS.find((path) => path && existsSync(path));
  if (!found()) {
    const install = ['install', '-y', '--no-install-recommends', 'chromium'];
    for (const args of [['update'], install]) spawnSync('apt-get', args, { stdio: 'inherit' });
  }
  return found() ?? assert.fail('no Chromium: install it, or name it in CHROMIUM');
}

async function startServer(extra = {}) {
  const args = [cli, 'serve', '--model', 'laya-tiny', '--port', '0', '--log-level', 'silent'];
  const child = spawn(process.execPath, args, { env: { ...env, ...extra }, stdio: ['ignore', 'pipe', 'inherit'] });
  const [address] = await once(child.stdout.setEncoding('utf8'), 'data');
  const url = address.trim();
  while ((await fetch(`${url}/ready`)).status !== 200) await new Promise(setImmediate);
  return { url, child };
}

const meters = (page) =>
  page.locator('.answer').evaluateAll((cards) =>
    cards.map((card) => ({
      name: card.querySelector('h3').textContent,
      verdict: card.querySelector('.verdict').textContent,
      options: [...card.querySelectorAll('[role=meter]')].map((meter) => ({
        name: meter.getAttribute('aria-label'),
        p: Number(meter.getAttribute('aria-valuenow')),
        width: meter.firstElementChild.getBoundingClientRect().width / meter.getBoundingClientRect().width,
      })),
    })),
  );

async function askWithKeys(page) {
  await page.locator('#state').focus();
  await page.keyboard.press('Control+Enter');
  await page.locator('.answer, .refused').first().waitFor();
}

const tests = {
  'shows probabilities as bars that add up to one': async ({ page, url }) => {
    await page.goto(url);
    await askWithKeys(page);
    const cards = await meters(page);
    assert.deepEqual(
      cards.map(({ name }) => name),
      ['topic', 'urgency', 'angry'],
    );
    assert.equal(cards[0].verdict, 'billing');
    for (const { options } of cards) {
      assert.ok(Math.abs(options.reduce((sum, { p }) => sum + p, 0) - 1) < 0.002);
      await page.waitForFunction(() => document.getAnimations().length === 0);
    }
    for (const { options } of await meters(page))
      for (const { p, width } of options) assert.ok(Math.abs(width - p) < 0.03, `${width} for ${p}`);
    await page.screenshot({ path: join(results, 'light.png'), fullPage: true });
  },
  'follows the dark setting': async ({ page, url }) => {
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.goto(url);
    await askWithKeys(page);
    await page.waitForFunction(() => document.getAnimations().length === 0);
    const [r, g, b] = await page.evaluate(() =>
      getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number),
    );
    assert.ok(r + g + b < 150);
    await page.screenshot({ path: join(results, 'dark.png'), fullPage: true });
  },
  'fits a narrow screen': async ({ page, url }) => {
    await page.setViewportSize({ width: 390, height: 844 });
    await page.goto(url);
    await askWithKeys(page);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false);
    await page.screenshot({ path: join(results, 'narrow.png'), fullPage: true });
  },
  'can be used with the keyboard alone': async ({ page, url }) => {
    await page.goto(url);
    await page.locator('#add').focus();
    await page.keyboard.press('Enter');
    await page.keyboard.type('late');
    await page.keyboard.press('Tab');
    await page.keyboard.type('yes');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    await page.keyboard.type('Is a parcel late?');
    await page.keyboard.press('Control+Enter');
    await page.locator('.answer').nth(3).waitFor();
    const cards = await meters(page);
    assert.deepEqual(
      cards[3].options.map(({ name }) => name),
      ['yes', 'no'],
    );
  },
  'keeps the order of labels that look like numbers': async ({ page, url }) => {
    await page.goto(url);
    await page.locator('.question .options').first().fill('10: billing\n2: shipping\n1: technical');
    await askWithKeys(page);
    const [{ options }] = await meters(page);
    assert.deepEqual(
      options.map(({ name }) => name),
      ['10', '2', '1'],
    );
  },
  'shows a refusal and what to do': async ({ page, url }) => {
    await page.goto(url);
    await page.locator('.question .options').first().fill('same\nsame');
    await askWithKeys(page);
    assert.match(await page.locator('.refused').textContent(), /Refused \(422\)/);
  },
  'runs no script but its own': async ({ page, url }) => {
    const blocked = [];
    page.on('console', (message) => blocked.push(message.text()));
    await page.goto(url);
    await page.evaluate(() => {
      const script = document.createElement('script');
      script.textContent = 'window.broken = true';
      document.body.append(script);
      document.body.insertAdjacentHTML('beforeend', '<img src="http://evil.example/x.png">');
    });
    assert.equal(await page.evaluate(() => window.broken), undefined);
    assert.ok(blocked.some((text) => text.includes('Content Security Policy')));
  },
  'shows text as text': async ({ page, url }) => {
    await page.goto(url);
    await page.locator('.question .id').first().fill('<img src=x onerror=alert(1)>');
    await askWithKeys(page);
    assert.equal((await meters(page))[0].name, '<img src=x onerror=alert(1)>');
    assert.equal(await page.locator('#answers img').count(), 0);
  },
  'asks for the key where there is one': async ({ page, locked }) => {
    await page.goto(locked);
    await askWithKeys(page);
    assert.match(await page.locator('.refused').textContent(), /Refused \(401\)/);
    await page.locator('#key').fill('sesame');
    await askWithKeys(page);
    await page.locator('.answer').first().waitFor();
  },
};

mkdirSync(results, { recursive: true });
const executablePath = browserPath();
spawnSync(process.execPath, [cli, 'build', 'laya-tiny'], { env, stdio: ['ignore', 'ignore', 'inherit'] });
const [open, guarded] = [await startServer(), await startServer({ LAYA_API_KEY: 'sesame' })];
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
const totals = { passed: 0, failed: 0 };
for (const [name, test] of Object.entries(tests)) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  page.setDefaultTimeout(30_000);
  try {
    await test({ page, url: open.url, locked: guarded.url });
    totals.passed += 1;
    console.log(`ok: ${name}`);
  } catch (error) {
    totals.failed += 1;
    console.log(`FAILED: ${name}\n${error.stack}`);
  }
  await page.close();
}
await browser.close();
for (const { child } of [open, guarded]) {
  child.kill('SIGTERM');
  await once(child, 'close');
}
if (!process.env.LAYA_APPLE_CACHE) rmSync(cache, { recursive: true, force: true });
console.log(`screenshots: ${results}\n${totals.passed} passed, ${totals.failed} failed`);
process.exitCode = totals.failed === 0 ? 0 : 1;
