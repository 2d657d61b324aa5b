// Pictures of a report for docs/page: `node screenshots.mjs PAGE FOLDER NAME`. The first screen at three widths, in both
// schemes (`many` in the light one alone), and the first sheet of paper.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(process.env.PICKFS_BROWSER_MODULES + '/');
const { chromium } = require('playwright-core');
const [page, folder, name] = process.argv.slice(2);
const SIZES = { 1400: 1000, 800: 1000, 390: 844 };

const browser = await chromium.launch({ executablePath: process.env.PICKFS_CHROMIUM, args: ['--no-sandbox'] });
const open = async (width, height, colorScheme, media) => {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme, reducedMotion: 'reduce' });
  const tab = await context.newPage();
  if (media) await tab.emulateMedia({ media });
  await tab.goto(pathToFileURL(page).href);
  return tab;
};

for (const [width, height] of Object.entries(SIZES)) {
  for (const scheme of name === 'many' ? ['light'] : ['light', 'dark']) {
    const tab = await open(Number(width), height, scheme);
    await tab.screenshot({ path: `${folder}/${name}-${width}-${scheme}.png` });
    await tab.context().close();
  }
}
const paper = await open(794, 1123, 'light', 'print');
await paper.screenshot({ path: `${folder}/${name}-print.png` });
await browser.close();
