// Looks at pages of a site in Chromium, and says what is wrong with them: `node site.mjs FOLDER PICTURES PAGE...`, pages as paths
// below the folder. Pictures of the first screens go to the other folder. One JSON object on standard output; all its lists are
// empty for pages that are as they should be.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(process.env.PICKFS_BROWSER_MODULES + '/');
const { chromium } = require('playwright-core');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const [folder, pictures, ...pages] = process.argv.slice(2);

const SIZES = { phone: [390, 844], laptop: [1400, 900] };
const found = { console: [], requests: [], axe: [], wide: [], small: [] };

const browser = await chromium.launch({ executablePath: process.env.PICKFS_CHROMIUM, args: ['--no-sandbox'] });
for (const [size, [width, height]] of Object.entries(SIZES)) {
  for (const colorScheme of ['light', 'dark']) {
    const context = await browser.newContext({ viewport: { width, height }, colorScheme });
    context.setDefaultTimeout(300000); // a machine may be busy
    for (const [at, page] of pages.entries()) {
      const name = `${page} ${size} ${colorScheme}`;
      const tab = await context.newPage();
      tab.on('console', said => found.console.push(`${name}: ${said.text()}`));
      tab.on('pageerror', error => found.console.push(`${name}: ${error.message}`));
      tab.on('request', asked => asked.url().startsWith('file:') || found.requests.push(asked.url()));
      await tab.goto(pathToFileURL(`${folder}/${page}`).href);
      await tab.screenshot({ path: `${pictures}/site-${at + 1}-${size}-${colorScheme}.png` });
      await tab.evaluate(axe);
      const { violations } = await tab.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
      for (const { id, help, nodes } of violations) {
        found.axe.push(`${name}: ${id}: ${help}: ${nodes.slice(0, 3).map(node => `${node.target} ${node.failureSummary}`).join(' | ')}`);
      }
      const wide = await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (wide > 0) found.wide.push(`${name}: ${wide} pixels too wide`);
      const small = await tab.evaluate(() => [...document.querySelectorAll('main *')]
        .filter(part => part.checkVisibility() && part.childElementCount === 0 && parseFloat(getComputedStyle(part).fontSize) < 12).length);
      if (small > 0) found.small.push(`${name}: ${small} texts below 12 pixels`);
      await tab.close();
    }
    await context.close();
  }
}
await browser.close();
console.log(JSON.stringify(found));
