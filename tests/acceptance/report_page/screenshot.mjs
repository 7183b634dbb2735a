// A picture of a report page, for documents.
//
//   node screenshot.mjs PLAYWRIGHT_FOLDER REPORT.html PICTURE.png [HEIGHT]
import {pathToFileURL} from "node:url";
import {findChromium, loadPlaywright, withBrowser} from "./browser.mjs";

const [folder, report, picture, height = "1150"] = process.argv.slice(2);
const chromium = findChromium();
const playwright = loadPlaywright(folder);
if (!chromium || !playwright || !picture) {
  console.error("usage: screenshot.mjs PLAYWRIGHT_FOLDER REPORT.html PICTURE.png [HEIGHT]; it needs Chromium " +
      "(Debian package chromium) and playwright-core (scripts/setup)");
  process.exit(2);
}
await withBrowser(playwright, chromium, async browser => {
  const page = await browser.newPage();
  await page.setViewportSize({width: 1280, height: Number(height)});
  await page.goto(pathToFileURL(report).href);
  await page.screenshot({path: picture});
});
