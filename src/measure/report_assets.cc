#include "measure/report_assets.h"

namespace septet::measure {

std::string_view report_style() {
  return R"css(
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);
 font:15px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1280px;margin:0 auto;padding:32px 24px 48px}
h1{font-size:28px;line-height:1.2;margin:0 0 10px;letter-spacing:-.01em}
h2{font-size:18px;margin:0;letter-spacing:-.005em}
.facts{display:flex;flex-wrap:wrap;gap:8px;margin:0 0 24px;padding:0;list-style:none}
.facts li{background:var(--page);border:1px solid var(--grid);border-radius:999px;padding:3px 12px;
 font-size:13px;color:var(--quiet)}
.facts b{color:var(--ink);font-weight:600}
.facts .simulated{background:var(--caution-ground);border-color:transparent;color:var(--caution)}
section,details{background:var(--page);border:1px solid var(--grid);border-radius:12px;
 padding:20px 22px;margin:0 0 20px}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,540px),1fr));gap:20px}
.charts section{margin:0}
.charts{margin:0 0 20px}
.subtitle{color:var(--quiet);font-size:13.5px;margin:0 0 4px}
.verdict ul{list-style:none;margin:10px 0 0;padding:0}
.verdict li{position:relative;padding:5px 0 5px 26px}
.verdict li::before{content:"";position:absolute;left:4px;top:12px;width:10px;height:10px;
 border-radius:50%;background:var(--gain)}
.verdict .none::before{background:none;border:2px solid var(--quiet)}
.verdict .caution{color:var(--quiet);font-size:14px}
.verdict .caution::before{border-radius:2px;background:var(--caution);transform:rotate(45deg);
 width:8px;height:8px;left:5px;top:12px}
.chart{display:block;width:100%;height:auto;overflow:visible;touch-action:pan-y}
table{font-size:14px}
.chart text{font-size:13px;fill:var(--ink)}
.chart .tick,.chart .axis{fill:var(--quiet)}
.chart .name{font-weight:600}
.chart .grid{stroke:var(--grid)}
.chart .line{fill:none;stroke-width:2.2;stroke-linejoin:round}
.chart .band{opacity:.16}
.chart .leader{fill:none;opacity:.6}
.chart .doubtful{fill:var(--page)}
.chart .guide{stroke:var(--quiet);stroke-dasharray:3 3}
.chart .faded{opacity:.18}
.logarithmic{display:none}
.log .logarithmic{display:block}
.log .linear{display:none}
.heading{display:flex;justify-content:space-between;align-items:baseline;gap:12px}
.switch{font:inherit;font-size:13px;color:var(--quiet);background:none;border:1px solid var(--grid);
 border-radius:8px;padding:3px 10px;cursor:pointer}
.switch[aria-pressed=true]{background:var(--ground);color:var(--ink)}
.tip{position:fixed;z-index:2;pointer-events:none;background:var(--page);color:var(--ink);
 border:1px solid var(--grid);border-radius:8px;box-shadow:0 6px 24px #0003;padding:8px 12px;
 font-size:13px;line-height:1.5;display:none;white-space:nowrap}
.tip table{border-collapse:collapse}
.tip td{padding:0 0 0 12px;text-align:right;border:0}
.tip td:first-child{padding-left:0;text-align:left}
.tip i{display:inline-block;width:9px;height:9px;border-radius:50%;margin-right:7px}
.tip .note{color:var(--caution)}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th{font-weight:600;color:var(--quiet);font-size:13px;text-align:right;vertical-align:bottom}
th,td{padding:6px 10px;border-bottom:1px solid var(--grid);text-align:right;white-space:nowrap}
th:first-child,td:first-child{text-align:left;padding-left:0}
tr:last-child td{border-bottom:0}
td.bad{color:var(--caution);font-weight:600}
td.quiet,.quiet{color:var(--quiet)}
summary{cursor:pointer;font-weight:600;font-size:18px}
details[open] summary{margin-bottom:10px}
footer{color:var(--quiet);font-size:13px}
footer code{background:var(--page);border:1px solid var(--grid);border-radius:6px;padding:1px 6px;
 overflow-wrap:anywhere}
@media print{
 body{font-size:11pt}main{max-width:none;padding:0}.switch,.tip{display:none!important}
 section{break-inside:avoid;border-color:#ccc}.charts{display:block}
 .charts section{margin:0 0 12pt}details{break-inside:auto}
}
)css";
}

std::string_view report_script() {
  return R"js(
"use strict";
const tip = document.querySelector(".tip");
const format = n => {
  const a = Math.abs(n);
  return n.toLocaleString("en", {maximumFractionDigits: a >= 100 ? 0 : a >= 10 ? 1 : a >= 1 ? 2 : 4});
};
const text = (tag, content, parent, name) => {
  const node = parent.appendChild(document.createElement(tag));
  if (name) node.className = name;
  node.append(content);
  return node;
};
function valuesAt(chart, x) {
  const found = [];
  for (const series of chart.querySelectorAll(".series"))
    for (const point of series.querySelectorAll(".point"))
      if (point.dataset.x === x) found.push({series, point});
  return found.sort((a, b) => b.point.dataset.y - a.point.dataset.y);
}
function show(chart, event) {
  const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(
      chart.getScreenCTM().inverse());
  let nearest = null, distance = Infinity;
  for (const point of chart.querySelectorAll(".point")) {
    const d = Math.abs(point.getAttribute("cx") - at.x) * 4 +
        Math.abs(point.getAttribute("cy") - at.y);
    if (d < distance) { distance = d; nearest = point; }
  }
  if (!nearest) return;
  tip.replaceChildren();
  text("b", chart.dataset.xname + " " + format(+nearest.dataset.x), tip);
  const table = text("table", "", tip);
  for (const {series, point} of valuesAt(chart, nearest.dataset.x)) {
    const row = text("tr", "", table);
    const name = text("td", "", row);
    text("i", "", name).style.background = getComputedStyle(series.querySelector(".line")).stroke;
    text(point === nearest ? "b" : "span", series.dataset.name, name);
    const d = point.dataset;
    const spread = d.high === undefined ? "" : " \u00b1 " + format((d.high - d.low) / 2);
    text("td", format(+d.y) + spread + " " + chart.dataset.unit, row);
    if (d.note) text("td", d.note, row, "note");
  }
  const own = nearest.closest(".series");
  for (const series of chart.querySelectorAll(".series"))
    series.classList.toggle("faded", series !== own && distance < 60);
  const guide = chart.querySelector(".guide");
  guide.setAttribute("x1", nearest.getAttribute("cx"));
  guide.setAttribute("x2", nearest.getAttribute("cx"));
  guide.style.display = tip.style.display = "block";
  const wide = tip.offsetWidth + 18;
  const left = event.clientX + wide > innerWidth ? event.clientX - wide : event.clientX + 18;
  tip.style.left = Math.max(4, left) + "px";
  tip.style.top = Math.min(event.clientY + 12, innerHeight - tip.offsetHeight - 6) + "px";
}
function hide(chart) {
  tip.style.display = chart.querySelector(".guide").style.display = "none";
  for (const series of chart.querySelectorAll(".series")) series.classList.remove("faded");
}
for (const chart of document.querySelectorAll(".chart")) {
  chart.addEventListener("pointermove", event => show(chart, event));
  chart.addEventListener("pointerleave", () => hide(chart));
}
for (const button of document.querySelectorAll(".switch"))
  button.addEventListener("click", () => {
    const on = button.closest("section").classList.toggle("log");
    button.setAttribute("aria-pressed", on);
  });
addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details")) part.open = true;
});
)js";
}

}  // namespace septet::measure
