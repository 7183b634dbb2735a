// The report page in a real browser: charts are there, values match results.csv, hover, switch, dark
// and print work, and the throughput chart looks like the golden picture. Runs on node 18 and newer.
//
//   node report_page_test.mjs SEPTET PLAYWRIGHT_FOLDER WORK_FOLDER
//
// Exits 77 (ctest: skipped) without Chromium or playwright-core. UPDATE_GOLDEN=1 takes a new golden
// picture; look at it before committing it.
import {execFileSync} from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import {fileURLToPath, pathToFileURL} from "node:url";
import {findChromium, loadPlaywright, withBrowser} from "./browser.mjs";
import {checkAxesAndBands, checkForeignPage, checkProfilePage, readChart} from "./other_pages.mjs";

const [septet, playwrightFolder, workFolder] = process.argv.slice(2);
const here = path.dirname(fileURLToPath(import.meta.url));
const golden = path.join(here, "throughput.golden.png");
const kSkipped = 77;

function skip(why) {
  console.log(`skipped: ${why}`);
  process.exit(kSkipped);
}

let failures = 0;
function check(holds, what) {
  console.log(`${holds ? "ok" : "NOT OK"}: ${what}`);
  failures += holds ? 0 : 1;
}

// results.csv as objects; the machine's name is the one quoted cell.
function readRows(file) {
  const [header, ...lines] = fs.readFileSync(file, "utf8").trim().split("\n");
  const names = header.split(",");
  return lines.map(line => {
    const cells = line.match(/("([^"]|"")*"|[^,]*)(,|$)/g).map(c => c.replace(/,$/, ""));
    return Object.fromEntries(names.map((name, i) => [name, cells[i]]));
  });
}

const labels = {mig: "MIG"};
const seriesName = row => `${row.replicas} \u00d7 ${labels[row.technique] ?? row.technique}`;

// What the page's chart must show: series name -> [x, y] pairs in order of x.
function expected(rows, y) {
  const series = new Map();
  for (const row of rows) {
    const points = series.get(seriesName(row)) ?? [];
    points.push([Number(row.concurrency), y(row)]);
    series.set(seriesName(row), points);
  }
  return series;
}

function sameSeries(shown, wanted) {
  if (shown.length !== wanted.size) return false;
  return shown.every(([name, points]) => {
    const other = wanted.get(name);
    return other?.length === points.length &&
        points.every(([x, y], i) => x === other[i][0] && Math.abs(y - other[i][1]) < 1e-9 * (1 + y));
  });
}

async function checkValues(page, rows) {
  for (const suffix of ["", "-log"]) {
    check(sameSeries(await readChart(page, "throughput" + suffix), expected(rows, r => +r.throughput)),
        `throughput${suffix} shows every value of results.csv`);
    check(sameSeries(await readChart(page, "p90" + suffix), expected(rows, r => r.p90 / 1000)),
        `p90${suffix} shows every value of results.csv`);
  }
  const doubtful = rows.filter(r => r.stable === "false" || +r.errors > 0).length;
  check(await page.locator("#throughput .doubtful").count() === doubtful,
      "unstable rows and rows with failures are hollow");
  check(await page.locator("#rows tr").count() === rows.length + 1, "the table has every row");
  check((await page.locator("#verdict").innerText()).includes("throughput grew with replicas"),
      "the verdict is there in words");
}

async function checkHover(page, rows) {
  const row = rows.find(r => seriesName(r) === "7 \u00d7 MIG" && r.concurrency === "10");
  const box = await page.locator(`#throughput .point[data-y="${+row.throughput}"]`).boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  const tip = page.locator(".tip");
  const text = await tip.innerText();
  check(await tip.isVisible(), "a tip shows beside the pointer");
  check(text.includes("concurrency 10"), "the tip names the level");
  check(text.includes(Number(row.throughput).toFixed(1)), "the tip shows the value");
  check(text.includes("2 failed"), "the tip shows what is wrong with a neighbour's value");
  await page.mouse.move(2, 2);
  check(!(await tip.isVisible()), "the tip goes with the pointer");
}

async function checkSwitch(page) {
  check(await page.locator("#throughput").isVisible(), "the linear chart shows first");
  await page.locator(".switch").first().click();
  check(await page.locator("#throughput-log").isVisible() &&
      !(await page.locator("#throughput").isVisible()), "the switch shows the logarithmic chart");
  await page.locator(".switch").first().click();
}

async function checkMedia(page) {
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await page.emulateMedia({colorScheme: "dark"});
  check(await ground() !== light, "the page follows a dark scheme");
  await page.emulateMedia({colorScheme: "dark", media: "print"});
  check(await ground() === light, "print is light");
  check(!(await page.locator(".switch").first().isVisible()), "print has no buttons");
  await page.emulateMedia({colorScheme: "light", media: "screen"});
}

async function checkNarrow(page) {
  await page.setViewportSize({width: 390, height: 800});
  const overflow = await page.evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  check(overflow <= 0, `a telephone's width needs no sideways scrolling (${overflow} px over)`);
  await page.setViewportSize({width: 1280, height: 900});
}

// Both pictures small and grey, so that fonts and rounding do not matter, structure and lines do.
const differ = (page, pictures) => page.evaluate(async urls => {
  const grey = async url => {
    const image = await createImageBitmap(await (await fetch(url)).blob());
    const canvas = new OffscreenCanvas(160, 96);
    const context = canvas.getContext("2d");
    context.imageSmoothingQuality = "high";
    context.drawImage(image, 0, 0, 160, 96);
    const rgba = context.getImageData(0, 0, 160, 96).data;
    return Array.from({length: 160 * 96}, (_, i) =>
        0.299 * rgba[4 * i] + 0.587 * rgba[4 * i + 1] + 0.114 * rgba[4 * i + 2]);
  };
  const [a, b] = await Promise.all(urls.map(grey));
  const gaps = a.map((value, i) => Math.abs(value - b[i]));
  return {mean: gaps.reduce((x, y) => x + y) / gaps.length,
    far: gaps.filter(gap => gap > 48).length / gaps.length};
}, pictures.map(bytes => "data:image/png;base64," + bytes.toString("base64")));

async function checkGolden(page) {
  const shot = await page.locator("#throughput").screenshot();
  fs.writeFileSync(path.join(workFolder, "throughput.png"), shot);
  if (process.env.UPDATE_GOLDEN === "1") {
    fs.writeFileSync(golden, shot);
  }
  const blank = await page.context().newPage();
  const {mean, far} = await differ(blank, [shot, fs.readFileSync(golden)]);
  check(mean < 3 && far < 0.02, `looks like the golden picture (mean ${mean.toFixed(2)} of 255, ` +
      `${(far * 100).toFixed(2)} % far off; ${path.join(workFolder, "throughput.png")})`);
  // The comparison itself must be able to fail: another chart is another picture.
  const other = await page.locator("#p90").screenshot();
  const apart = await differ(blank, [other, fs.readFileSync(golden)]);
  check(!(apart.mean < 3 && apart.far < 0.02), "another chart does not look like it");
  await blank.close();
}

async function main() {
  const chromium = findChromium();
  if (!chromium) skip("there is no Chromium (Debian package chromium)");
  const playwright = loadPlaywright(playwrightFolder);
  if (!playwright) skip(`there is no playwright-core in ${playwrightFolder}; scripts/setup brings it`);
  fs.mkdirSync(workFolder, {recursive: true});
  const csv = path.join(here, "results.csv");
  const report = path.join(workFolder, "report.html");
  execFileSync(septet, ["report", csv, "-o", report, "--svg", path.join(workFolder, "svg")]);
  const rows = readRows(csv);

  await withBrowser(playwright, chromium, async browser => {
    const page = await browser.newPage();
    const problems = [];
    page.on("pageerror", error => problems.push(String(error)));
    page.on("console", message => message.type() === "error" && problems.push(message.text()));
    const loaded = [];
    page.on("request", request => loaded.push(request.url()));
    await page.goto(pathToFileURL(report).href);
    await checkValues(page, rows);
    await checkAxesAndBands(page, {check});
    await checkHover(page, rows);
    await checkSwitch(page);
    await checkMedia(page);
    await checkNarrow(page);
    await checkGolden(page);
    check(loaded.length === 1, `the page loads nothing but itself (${loaded.length} loads)`);
    check(problems.length === 0, `no error in the page ${problems.join("; ")}`);
    const tools = {septet, here, workFolder, readRows, check};
    await checkProfilePage(page, tools);
    await checkForeignPage(page, tools);
    check(problems.length === 0, `no error in those pages ${problems.join("; ")}`);
    const file = await browser.newPage();
    await file.goto(pathToFileURL(path.join(workFolder, "svg", "p90.svg")).href);
    check(await file.evaluate(() => document.documentElement.tagName === "svg" &&
        document.querySelectorAll(".point").length) === rows.length,
        "an SVG file stands alone with every point");
  });
  return failures === 0 ? 0 : 1;
}

process.exit(await main());
