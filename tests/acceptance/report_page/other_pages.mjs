// Pages of other kinds than one experiment's: partition sizes compared, and results of other programs.
//
// profiles.csv is what septet compare --profiles wrote; perf_analyzer.csv and wrk.txt are invented, in
// the forms of those programs.
import {execFileSync} from "node:child_process";
import path from "node:path";
import {pathToFileURL} from "node:url";

export const readChart = (page, id) => page.evaluate(chart => {
  const series = document.querySelectorAll(`#${chart} .series`);
  return [...series].map(s => [s.dataset.name, [...s.querySelectorAll(".point")].map(
      p => [Number(p.dataset.x), Number(p.dataset.y)])]);
}, id);

const near = (a, b) => Math.abs(a - b) < 1e-9 * (1 + Math.abs(b));

// A full GPU's throughput against p90, for each profile: as many partitions as fit were measured.
export async function checkProfilePage(page, {septet, here, workFolder, readRows, check}) {
  const csv = path.join(here, "profiles.csv");
  const report = path.join(workFolder, "profiles.html");
  const price = 3.6, sloMs = 1e9;
  const text = execFileSync(septet, ["report", csv, "-o", report, "--price-per-hour", String(price),
    "--slo", `${sloMs}ms`], {encoding: "utf8"});
  const rows = readRows(csv);
  const profiles = [...new Set(rows.map(r => r.profile))];
  const best = profiles.map(profile => rows.filter(r => r.profile === profile)
      .reduce((a, b) => +a.throughput >= +b.throughput ? a : b))
      .sort((a, b) => b.throughput - a.throughput);

  await page.goto(pathToFileURL(report).href);
  const shown = new Map(await readChart(page, "profiles-1"));
  check(profiles.length > 2 && shown.size === profiles.length, "every partition size has its line");
  check(profiles.every(profile => {
    const own = rows.filter(r => r.profile === profile);
    const points = shown.get(profile) ?? [];
    return points.length === own.length && own.every(
        (r, i) => near(points[i][0], r.p90 / 1000) && near(points[i][1], +r.throughput));
  }), "its points are p90 and throughput of profiles.csv");

  const table = await page.locator("#profiles-verdict ~ .charts table tr").evaluateAll(
      trs => trs.slice(1).map(tr => [...tr.children].map(td => td.innerText)));
  check(table.map(cells => cells[0]).join() === best.map(r => r.profile).join(),
      "the table has the most throughput first");
  const million = row => (price / 3600 / row.throughput * 1e6).toFixed(2);
  check(best.every((row, i) => table[i]?.[5] === million(row)),
      "the cost of a million inferences is the price of the hour by the throughput");
  const verdict = await page.locator("#profiles-verdict").innerText();
  check(verdict.includes(best[0].profile), "the verdict names the best size");
  check(text.includes("inferences/s a GPU"), "the terminal says the same");
  check(await page.locator("#profiles-1 .line").count() === profiles.length, "with lines");
}

// Runs of perf_analyzer and wrk side by side.
export async function checkForeignPage(page, {septet, here, workFolder, check}) {
  const report = path.join(workFolder, "foreign.html");
  execFileSync(septet, ["report", path.join(here, "perf_analyzer.csv"), path.join(here, "wrk.txt"),
    "-o", report]);
  await page.goto(pathToFileURL(report).href);
  const lines = await readChart(page, "throughput");
  const of = name => lines.find(([series]) => series.includes(name))?.[1] ?? [];
  check(JSON.stringify(of("perf_analyzer")) === "[[1,240.75],[2,451.25],[4,812.5]]",
      "perf_analyzer's rows stand in order of level");
  check(JSON.stringify(of("wrk")) === "[[2,488]]", "wrk's run stands beside them");
  const latencies = await readChart(page, "p90");
  check(near(latencies.find(([name]) => name.includes("wrk"))?.[1][0][1], 5.05),
      "with wrk's 90th percentile");
  check((await page.locator("#verdict").innerText()).length > 0, "and a verdict");
}

// Logarithmic axes: a tenfold step is as wide from 1 to 10 as from 10 to 100; and bands are drawn.
export async function checkAxesAndBands(page, {check}) {
  const shape = await page.evaluate(() => {
    const chart = document.querySelector("#throughput-log");
    const ticks = new Map([...chart.querySelectorAll("text.tick[text-anchor=middle]")].map(
        t => [Number(t.textContent), Number(t.getAttribute("x"))]));
    const points = [...chart.querySelectorAll(".point")].map(
        p => [Number(p.dataset.x), Number(p.getAttribute("cx"))]);
    const bands = document.querySelectorAll("#throughput .band").length;
    return {ticks: [...ticks], points, bands,
      series: document.querySelectorAll("#throughput .series").length};
  });
  const xs = new Map(shape.points);
  const [[a, xa], [b, xb]] = [[...xs][0], [...xs].at(-1)];
  const slope = (xb - xa) / Math.log(b / a);
  check(b > a && [...xs].every(([x, at]) => Math.abs(xa + slope * Math.log(x / a) - at) < 0.2),
      "the logarithmic axis is logarithmic");
  check(shape.bands === shape.series, "every line has its confidence band");
}
