"use strict";
// The chart: lines of a few keys over time, panned and zoomed with mouse, touch or keyboard. Knows nothing of the server.

const Chart = (() => {
  const place = () => document.getElementById("chart");
  const LIGHT = ["#0b6e99", "#c2410c", "#1a7f4b", "#7c3aed", "#b4231f", "#8a6100", "#be185d", "#3f4c59"];
  const DARK = ["#58b7e0", "#ff9d66", "#5fd39a", "#b79cff", "#ff8a80", "#e8c15a", "#f58ac2", "#c3ced8"];
  const dark = () => matchMedia("(prefers-color-scheme: dark)").matches;
  const color = (i) => { const list = dark() ? DARK : LIGHT; return list[i % list.length]; };
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  let drawn = false, moved = null, own = false;

  // Plotly knows no time zones: what it shows is what it is given, so it is given UTC without a zone.
  const bare = (ms) => new Date(ms).toISOString().slice(0, 23);
  const millis = (text) => Date.parse(String(text).replace(" ", "T").replace(/Z?$/, "Z"));

  function layout(view) {
    const ink = style("--ink"), soft = style("--soft"), line = style("--line");
    const shapes = [], notes = [];
    if (view.complete > view.from && view.complete < view.to) {
      shapes.push({ type: "rect", xref: "x", yref: "paper", x0: bare(view.complete), x1: bare(view.to), y0: 0, y1: 1, fillcolor: style("--tint"), opacity: 0.55, line: { width: 0 }, layer: "below" });
      shapes.push({ type: "line", xref: "x", yref: "paper", x0: bare(view.complete), x1: bare(view.complete), y0: 0, y1: 1, line: { color: soft, width: 1.2, dash: "dot" } });
      notes.push({ xref: "x", yref: "paper", x: bare(view.complete), y: 1, yanchor: "bottom", xanchor: "right", text: view.provisional ? "watermark · provisional →" : "watermark · not final →", showarrow: false, font: { size: 11, color: soft } });
    }
    return {
      margin: { l: 56, r: 16, t: 18, b: 42 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: ink, family: "system-ui, sans-serif", size: 12 },
      showlegend: false, hovermode: "x unified", dragmode: "pan", hoverlabel: { bgcolor: style("--card"), bordercolor: line, font: { color: ink } },
      xaxis: { type: "date", range: [bare(view.from), bare(view.to)], gridcolor: line, linecolor: line, zeroline: false, tickcolor: line },
      yaxis: { gridcolor: line, zerolinecolor: line, rangemode: view.fromZero ? "tozero" : "normal", fixedrange: true, tickformat: "~s", automargin: true },
      shapes, annotations: notes,
    };
  }

  // The last point is of a step that the watermark has not passed yet, or what is provisional: dotted, so that it is not read as a fall.
  function traces(lines, view) {
    const out = [];
    lines.forEach((line, i) => {
      const few = line.x.length <= 40;
      const base = { type: "scatter", mode: few ? "lines+markers" : "lines", name: line.name, connectgaps: false, marker: { size: 5 } };
      // The last final point begins the provisional part, so that the line does not break there.
      const cut = line.x.findIndex((x) => x + view.step > view.complete), last = cut < 0 ? line.x.length : cut;
      out.push({ ...base, x: line.x.slice(0, last).map(bare), y: line.y.slice(0, last), line: { color: color(i), width: 1.9 } });
      if (cut >= 0) out.push({ ...base, name: line.name + (view.provisional ? " (provisional)" : " (so far)"), x: line.x.slice(Math.max(last - 1, 0)).map(bare), y: line.y.slice(Math.max(last - 1, 0)), line: { color: color(i), width: 1.9, dash: "dot" } });
    });
    return out;
  }

  async function draw(lines, view) {
    const div = place();
    own = true;
    try {
      await Plotly.react(div, traces(lines, view), layout(view), { displayModeBar: false, scrollZoom: true, responsive: true, doubleClick: false });
    } finally { own = false; }
    if (!drawn) {
      drawn = true;
      div.on("plotly_relayout", (event) => {
        const a = event["xaxis.range[0]"] ?? event["xaxis.range"]?.[0], b = event["xaxis.range[1]"] ?? event["xaxis.range"]?.[1];
        if (!own && a !== undefined && moved) moved(millis(a), millis(b));
      });
      new ResizeObserver(() => { if (div.clientHeight) Plotly.Plots.resize(div); }).observe(div);
      div.on("plotly_doubleclick", () => moved && moved(null, null));
    }
  }

  return { draw, color, onMove(f) { moved = f; } };
})();
