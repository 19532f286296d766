// Charts of [data-chart]: "line" or "bar". Their figures are in data-points, or come as JSON from data-url:
// {"at": [ms], "currency": "USDT" | "", "series": [{"label": "", "values": [whole units or counts]}]}. Colours are
// those of the theme. A table below has the same figures for people who can't see the picture.
"use strict";

(() => {
  const UNITS = 1e6;
  const HEIGHT = 240;
  const HALF_DAY_S = 43200;
  const COLOURS = ["--accent", "--warn", "--info", "--bad"];
  const lang = document.documentElement.lang;
  const charts = new Map();

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  function fade(hex, share) {
    const parts = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
    return `rgb(${parts.join(" ")} / ${share})`;
  }

  function scale(points) {
    const by = points.currency ? UNITS : 1;
    return [points.at.map((ms) => ms / 1000), ...points.series.map((line) => line.values.map((value) => value / by))];
  }

  function readings(points) {
    const exact = new Intl.NumberFormat(lang, { maximumFractionDigits: points.currency ? 2 : 0 });
    const rough = new Intl.NumberFormat(lang, { notation: "compact", maximumFractionDigits: 1 });
    return {
      exact: (value) => (value == null ? "\u2014" : `${exact.format(value)} ${points.currency}`.trim()),
      rough: (value) => rough.format(value),
    };
  }

  function describe(figure, area, points) {
    const day = new Intl.DateTimeFormat(lang, { month: "short", day: "numeric", timeZone: "UTC" });
    const fullDay = new Intl.DateTimeFormat(lang, { dateStyle: "medium", timeZone: "UTC" });
    const read = readings(points);
    const bars = figure.dataset.chart === "bar";
    const line = colour("--line");
    const axis = {
      stroke: colour("--ink-3"),
      font: `12px ${getComputedStyle(document.body).fontFamily}`,
      grid: { stroke: line, width: 1 },
      ticks: { show: false },
    };
    return {
      width: Math.max(area.clientWidth, 120),
      height: HEIGHT - 32,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "UTC"),
      cursor: { y: false, points: { size: 8 }, drag: { x: false, y: false } },
      legend: { live: true },
      // A bar is centred on its day, half a day to each side.
      scales: {
        x: { range: (_, first, last) => (bars ? [first - HALF_DAY_S, last + HALF_DAY_S] : [first, last]) },
        y: { range: (_, low, high) => [Math.min(0, low), high > 0 ? high * 1.1 : 1] },
      },
      axes: [
        { ...axis, grid: { show: false }, values: (_, at) => at.map((seconds) => day.format(seconds * 1000)), space: 64, size: 32 },
        { ...axis, values: (_, values) => values.map(read.rough), size: 52 },
      ],
      series: [
        { label: figure.dataset.day, value: (_, seconds) => (seconds == null ? "\u2014" : fullDay.format(seconds * 1000)) },
        ...points.series.map((one, index) => {
          const ink = colour(COLOURS[index % COLOURS.length]);
          return {
            label: one.label,
            value: (_, value) => read.exact(value),
            stroke: ink,
            width: 2,
            fill: bars ? ink : index === 0 ? fade(ink, 0.1) : undefined,
            paths: bars ? uPlot.paths.bars(place(index, points.series.length)) : undefined,
            points: { show: points.at.length < 3 && !bars },
          };
        }),
      ],
    };
  }

  // Two series are side by side; a single one is in the middle.
  function place(index, count) {
    const share = 0.6 / Math.min(count, 2);
    return { size: [share, 40], align: count < 2 ? 0 : index === 0 ? -1 : 1, radius: 0.15 };
  }

  async function read(figure) {
    if (figure.dataset.points) return JSON.parse(figure.dataset.points);
    const answer = await fetch(figure.dataset.url, { headers: { accept: "application/json" } });
    if (!answer.ok) throw new Error(`the figures answered ${answer.status}`);
    return answer.json();
  }

  function draw(figure) {
    const known = charts.get(figure);
    known.chart?.destroy();
    const area = figure.querySelector(".chart-area");
    area.dataset.points = String(known.points.at.length);
    known.chart = new uPlot(describe(figure, area, known.points), scale(known.points), area);
  }

  async function start(figure) {
    if (charts.has(figure)) return;
    const known = { points: null, chart: null };
    charts.set(figure, known);
    try {
      known.points = await read(figure);
    } catch {
      // The table below still shows the figures.
      figure.dataset.failed = "";
      return;
    }
    draw(figure);
    new ResizeObserver(([entry]) => {
      known.chart.setSize({ width: Math.max(Math.floor(entry.contentRect.width), 120), height: HEIGHT - 32 });
    }).observe(figure.querySelector(".chart-area"));
  }

  function startAll() {
    for (const figure of charts.keys()) {
      if (figure.isConnected) continue;
      charts.get(figure).chart?.destroy();
      charts.delete(figure);
    }
    document.querySelectorAll("[data-chart]").forEach(start);
  }

  document.addEventListener("themechange", () => {
    for (const [figure, known] of charts) if (known.points) draw(figure);
  });
  document.addEventListener("htmx:afterSwap", startAll);
  startAll();
})();
