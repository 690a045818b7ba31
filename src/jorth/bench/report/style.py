"""The style sheet of the page: dark on white, and readable on paper."""

from jorth.bench.report.templates import html

CSS = html("""
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, "Segoe UI", sans-serif; color: #1a1a1a; background: #fff; max-width: 92rem;
  margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.7rem; margin: 0 0 .5rem; }
h2 { font-size: 1.3rem; margin: 2.2rem 0 .6rem; border-bottom: 2px solid #1a1a1a; }
h3 { font-size: 1.05rem; margin: 1.4rem 0 .4rem; }
p, li { max-width: 60rem; }
.note { border-left: 4px solid #0072B2; padding: .1rem 1rem; background: #f4f7fa; }
.warning { border-left: 4px solid #D55E00; padding: .1rem 1rem; background: #fdf5f0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .77rem; margin: .6rem 0 1.2rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding: .3rem 0; font-size: .9rem; }
th, td { border: 1px solid #9a9a9a; padding: .25rem .4rem; text-align: left; vertical-align: top; }
td { white-space: nowrap; }
td.text { white-space: normal; min-width: 14rem; }
thead th { background: #ececec; }
tbody th { font-weight: 600; white-space: nowrap; }
tr.paper th, tr.paper td { background: #f7f7f7; font-style: italic; }
small { color: #444; }
.rank { display: inline-block; min-width: 1.15em; text-align: center; border: 1.5px solid; border-radius: 50%;
  font-weight: 700; font-style: normal; line-height: 1.15; margin-right: .25em; }
.rank1 { color: #fff; background: #00578a; border-color: #00578a; }
.rank2 { color: #00578a; border-color: #00578a; }
.rank3 { color: #444; border-color: #777; border-style: dashed; }
.failed { color: #8f2d00; font-weight: 600; white-space: normal; }
figure { margin: 1rem 0; }
figure img { max-width: 100%; height: auto; border: 1px solid #ddd; }
figcaption { font-size: .85rem; max-width: 60rem; }
footer { margin-top: 2.5rem; border-top: 2px solid #1a1a1a; font-size: .82rem; }
@page { size: A4 landscape; margin: 12mm; }
@media print {
  body { font-size: 10pt; max-width: none; padding: 0; }
  .scroll { overflow: visible; }
  table { font-size: 6.5pt; }
  th, td { padding: 1px 3px; }
  figure, tr { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
  .rank1 { color: #000; background: #fff; border: 2.5px solid #000; }
}
""")
