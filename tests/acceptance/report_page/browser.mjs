// Chromium (Debian package) driven by playwright-core (npm), without a network.
import fs from "node:fs";
import {createRequire} from "node:module";
import os from "node:os";
import path from "node:path";

export function findChromium() {
  const named = process.env.CHROMIUM ? [process.env.CHROMIUM] : [];
  const all = [...named, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
  return all.find(file => fs.existsSync(file));
}

// null when it is not in the folder.
export function loadPlaywright(folder) {
  try {
    return createRequire(path.resolve(folder, "package.json"))("playwright-core");
  } catch {
    return null;
  }
}

// Calls back with a browser that has a profile of its own, and tidies up after it.
export async function withBrowser(playwright, chromium, use) {
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), "septet-chromium-"));
  const browser = await playwright.chromium.launchPersistentContext(profile,
      {executablePath: chromium, headless: true, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
        viewport: {width: 1280, height: 900}, colorScheme: "light"});
  try {
    return await use(browser);
  } finally {
    await browser.close();
    fs.rmSync(profile, {recursive: true, force: true});
  }
}
