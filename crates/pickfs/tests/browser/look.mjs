// Looks at a report in Chromium as people do, and says what is wrong with it: `node look.mjs PAGE FOLDER`. Pictures go to the
// folder. One JSON object on standard output; all its lists are empty for a page that is as it should be.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(process.env.PICKFS_BROWSER_MODULES + '/');
const { chromium } = require('playwright-core');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const [page, folder] = process.argv.slice(2);
const place = pathToFileURL(page).href;

const SIZES = { phone: [390, 844], tablet: [800, 1000], laptop: [1400, 900] };
const found = { console: [], requests: [], axe: [], keyboard: [], reference: [], filters: [], overview: [], address: [], print: [], wide: [], pictures: [], script_off: [], ready_ms: {} };

const browser = await chromium.launch({ executablePath: process.env.PICKFS_CHROMIUM, args: ['--no-sandbox'] });

const open = async (size, scheme, more = {}) => {
  const [width, height] = SIZES[size];
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, ...more });
  context.setDefaultTimeout(300000); // a machine may be busy
  const tab = await context.newPage();
  tab.on('console', said => found.console.push(`${size} ${scheme}: ${said.text()}`));
  tab.on('pageerror', error => found.console.push(`${size} ${scheme}: ${error.message}`));
  tab.on('request', asked => /^(file|blob|data):/.test(asked.url()) || found.requests.push(asked.url()));
  const begun = performance.now();
  await tab.goto(place);
  found.ready_ms[`${size} ${scheme}`] = Math.round(performance.now() - begun);
  return tab;
};

const picture = async (tab, name) => {
  const { width } = tab.viewportSize();
  const height = Math.min(6000, await tab.evaluate(() => document.documentElement.scrollHeight));
  await tab.screenshot({ path: `${folder}/${name}.png`, fullPage: true, clip: { x: 0, y: 0, width, height } });
};

const checkAxe = async (tab, name) => {
  await tab.evaluate(axe);
  const { violations } = await tab.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  for (const { id, help, nodes } of violations) {
    found.axe.push(`${name}: ${id}: ${help}: ${nodes.slice(0, 3).map(node => `${node.target} ${node.failureSummary}`).join(' | ')}`);
  }
};

// Tab through all of it: everything that can be used is reached, in order, and shows where the focus is.
const walk = async tab => {
  const usable = await tab.evaluate(() => {
    const parts = [...document.querySelectorAll('a, button, select, input, summary, [tabindex="0"]')].filter(part => part.checkVisibility());
    parts.forEach((part, place) => { part.dataset.place = place; });
    return parts.length;
  });
  const seen = [];
  for (let step = 0; step < usable + 5; step++) {
    await tab.keyboard.press('Tab');
    const now = await tab.evaluate(() => {
      const part = document.activeElement;
      if (part === document.body) return null;
      return [part.dataset.place, part.tagName, part.textContent.slice(0, 30), getComputedStyle(part).outlineStyle];
    });
    if (!now || seen.some(before => before[0] === now[0])) break;
    seen.push(now);
  }
  const order = seen.map(part => Number(part[0]));
  order.forEach((place, step) => place === step || found.keyboard.push(`step ${step} goes to part ${place}: ${seen[step]}`));
  if (seen.length < usable) found.keyboard.push(`${seen.length} of ${usable} parts are reached`);
  seen.filter(part => part[3] === 'none').forEach(part => found.keyboard.push(`no focus is seen on ${part}`));
  if (seen[0]?.[1] !== 'A') found.keyboard.push(`first is ${seen[0]}, not the way past the head`);
};

const ratios = tab => tab.evaluate(() => [...document.querySelectorAll('table.forest td.ratio')].map(cell => cell.textContent));

// Another reference by keyboard alone, and back: what is shown changes, is what was judged, and comes back.
const changeReference = async tab => {
  const before = await ratios(tab);
  await tab.focus('#reference');
  await tab.keyboard.press('ArrowDown');
  const after = await ratios(tab);
  const named = await tab.evaluate(() => [document.querySelector('#reference').selectedOptions[0].textContent,
    ...new Set([...document.querySelectorAll('[data-named]')].map(place => place.textContent))]);
  if (String(before) === String(after)) found.reference.push('nothing changes');
  if (new Set(named).size !== 1) found.reference.push(`names differ: ${named}`);
  if (after.filter(text => text === 'reference').length !== before.filter(text => text === 'reference').length) found.reference.push(`references: ${after}`);
  await picture(tab, 'another-reference');
  await tab.keyboard.press('ArrowUp');
  if (String(before) !== String(await ratios(tab))) found.reference.push('going back does not give what was there');
};

const filter = async tab => {
  const rows = () => tab.evaluate(() => [...document.querySelectorAll('table.forest tbody tr')].filter(row => row.checkVisibility()).length);
  const before = await rows();
  await tab.focus('.choices summary');
  await tab.keyboard.press('Enter');
  await tab.keyboard.press('Tab');
  await tab.keyboard.press('Space');
  if (!(await rows() < before)) found.filters.push('a target is not hidden');
  await tab.keyboard.press('Space');
  if (await rows() !== before) found.filters.push('a target does not come back');
  await tab.keyboard.press('Escape');
  if (await tab.evaluate(() => document.querySelector('.choices').open)) found.filters.push('Escape does not close the list');
};

// The overview is on the first screen, and a click on a column puts its rows in order.
const overview = async tab => {
  const top = await tab.evaluate(() => document.querySelector('table.matrix tbody tr').getBoundingClientRect().bottom);
  if (top > 900) found.overview.push(`its first row ends at ${top}`);
  const values = () => tab.evaluate(() => {
    const column = document.querySelector('th[data-sort]:nth-child(4)').dataset.sort;
    return [...document.querySelectorAll(`td[data-o="${column}"]`)].map(cell => parseFloat(cell.dataset.v)).filter(value => !isNaN(value));
  });
  for (const sign of [1, -1]) {
    await tab.click('th[data-sort]:nth-child(4) button');
    const shown = await values();
    const wanted = [...shown].sort((a, b) => sign * (a - b));
    if (shown.length < 3 || String(shown) !== String(wanted)) found.overview.push(`not sorted: ${shown}`);
  }
  const copies = await tab.evaluate(() => [...document.querySelectorAll('tr.copy')].filter(row => row.checkVisibility()).length);
  if (copies < 2) found.overview.push(`${copies} rows of the reference's copy`);
  const colours = await tab.evaluate(() => new Set([...document.querySelectorAll('td[data-o]')].map(cell => getComputedStyle(cell).backgroundColor)).size);
  if (colours < 3) found.overview.push(`${colours} colours`);
};

// What is chosen is in the address, and comes back with it.
const address = async tab => {
  await tab.focus('#reference');
  await tab.keyboard.press('ArrowDown');
  await tab.click('th[data-sort]:nth-child(3) button');
  await tab.focus('.choices summary');
  await tab.keyboard.press('Enter');
  await tab.keyboard.press('Tab');
  await tab.keyboard.press('Tab');
  await tab.keyboard.press('Space');
  await tab.keyboard.press('Escape');
  const state = () => tab.evaluate(() => [document.querySelector('#reference').value, document.querySelector('table.matrix').innerText,
    [...document.querySelectorAll('table.forest td.ratio')].filter(cell => cell.checkVisibility()).map(cell => cell.textContent)].join());
  const [before, hash] = [await state(), await tab.evaluate(() => location.hash)];
  if (!/reference=.*sort=.*without=t/.test(hash)) found.address.push(`no choice in ${hash}`);
  await tab.reload();
  if (await state() !== before) found.address.push(`${hash} gives another page`);
  const stays = await tab.evaluate(() => { scrollTo({ top: 3000, behavior: 'instant' }); return document.querySelector('#controls').getBoundingClientRect().top; });
  if (stays !== 0) found.address.push(`the controls are at ${stays} after scrolling`);
};

const savePictures = async tab => {
  for (const [button, end] of [['figure .save button:nth-child(1)', 'svg'], ['figure .save button:nth-child(2)', 'png'], ['caption .save button:nth-child(1)', 'svg'], ['caption .save button:nth-child(2)', 'png']]) {
    const [download] = await Promise.all([tab.waitForEvent('download'), tab.click(button)]);
    const path = `${folder}/saved-${button.split(' ')[0]}.${end}`;
    await download.saveAs(path);
    const bytes = readFileSync(path);
    const begin = end === 'png' ? bytes.subarray(1, 4).toString() : bytes.subarray(0, 4).toString();
    if (begin !== (end === 'png' ? 'PNG' : '<svg') || bytes.length < 1000) found.pictures.push(`${button}: ${bytes.length} bytes that begin with ${begin}`);
    if (/\b(NaN|undefined)\b/.test(bytes.toString())) found.pictures.push(`${button}: a place is no number`);
  }
};

for (const size of Object.keys(SIZES)) {
  for (const scheme of ['light', 'dark']) {
    const tab = await open(size, scheme);
    await picture(tab, `${size}-${scheme}`);
    await checkAxe(tab, `${size} ${scheme}`);
    const wide = await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (wide > 0) found.wide.push(`${size}: ${wide} pixels too wide`);
    await tab.context().close();
  }
}

const walked = await open('laptop', 'light');
await walked.evaluate(() => document.querySelectorAll('main details:not(.choices)').forEach(part => { part.open = true; }));
await checkAxe(walked, 'all open');
await walk(walked);
await walked.context().close();
// A tab of its own: one that is loaded again keeps its place, and the first screen is its beginning.
const tab = await open('laptop', 'light');
await overview(tab);
await address(tab);
await tab.goto(place);
await tab.reload();
await changeReference(tab);
await filter(tab);
await savePictures(tab);
await tab.click('#theme');
if (await tab.evaluate(() => document.documentElement.dataset.theme) !== 'dark') found.filters.push('the page does not turn dark');
await tab.emulateMedia({ media: 'print' });
await tab.setViewportSize({ width: 794, height: 1123 });
await tab.evaluate(() => document.querySelectorAll('main details:not(.choices)').forEach(part => { part.open = true; }));
const cut = await tab.evaluate(() => [...document.querySelectorAll('main table, main dl')]
  .filter(part => part.getBoundingClientRect().right > innerWidth + 1).map(part => part.innerText.slice(0, 60)));
found.print.push(...cut);
await picture(tab, 'print');
await tab.pdf({ path: `${folder}/print.pdf`, format: 'A4' });

const still = await open('laptop', 'light', { javaScriptEnabled: false });
await picture(still, 'script-off');
for (const [what, selector] of [['verdict', '.headline'], ['ratio charts', 'svg.row use'], ['pictures', 'figure svg.chart']]) {
  if (!await still.locator(selector).first().isVisible()) found.script_off.push(`no ${what}`);
}
if (await still.locator('#controls').isVisible()) found.script_off.push('controls that do nothing');

await browser.close();
console.log(JSON.stringify(found));
