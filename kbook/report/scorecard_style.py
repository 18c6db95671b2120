"""How the HTML report looks; it fetches nothing."""

STYLE = """
:root { color-scheme: light; --ink: #1d2530; --muted: #5b6675; --line: #d8dee6; --soft: #f5f7fa; --blue: #0072b2;
  --leak: #ffd9b0; --broken: #e3d7f0; --mark: #ffe08a; --warn: #a34400; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 1.5rem 1.25rem 4rem; color: var(--ink); background: white;
  font: 15px/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.3rem; margin: 2.6rem 0 .2rem; padding-top: .9rem; border-top: 3px solid var(--ink); }
h3 { font-size: 1.02rem; margin: 1.9rem 0 .35rem; }
p, ul, dl { margin: .3rem 0 .7rem; max-width: 62rem; }
.lead, .note, .reasons, small { color: var(--muted); }
.lead { margin: 0; }
.note { font-size: .87rem; }
small { font-size: .74rem; white-space: nowrap; display: block; }
a { color: var(--blue); }
nav { margin: .8rem 0 0; font-size: .9rem; }
nav a { margin-right: 1rem; }
code, .code { font-family: ui-monospace, "SFMono-Regular", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: .82em; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; margin: .3rem 0 .8rem; }
.narrow { max-width: 40rem; }
table { border-collapse: collapse; width: 100%; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .32rem .5rem; border-bottom: 1px solid var(--line); }
thead th { font-size: .76rem; font-weight: 600; color: var(--muted); border-bottom: 2px solid var(--ink);
  vertical-align: bottom; }
tr.lane th { background: var(--soft); padding-top: .55rem; border-bottom: 1px solid var(--line); }
tr.lane small { display: inline; font-weight: 400; font-size: .82rem; white-space: normal; margin-left: .4rem; }
tr.told td { border-bottom: 0; padding-bottom: 0; }
tr.told + tr td { padding-top: 0; }
td.number { text-align: right; white-space: nowrap; }
th.number { text-align: right; }
td.number small { font-size: .7rem; }
.reasons { margin: 0 0 .35rem; padding-left: 1.1rem; font-size: .82rem; max-width: none; }
.chip { display: inline-block; padding: 0 .45em; border-radius: .7em; white-space: nowrap; font-weight: 600;
  border: 1px solid rgba(0, 0, 0, .12); color: #1d2530; }
.yes { color: #12703f; font-weight: 600; }
.no { color: var(--warn); font-weight: 600; }
.channel, .name { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: .78rem;
  border: 1px solid var(--line); border-radius: 3px; padding: 0 .3em; white-space: nowrap; background: var(--soft); }
ul.warnings { list-style: none; padding: 0; max-width: none; font-size: .87rem; }
ul.warnings li { padding: .25rem 0 .25rem .7rem; border-left: 3px solid #e69f00; margin: .3rem 0;
  overflow-wrap: anywhere; }
details { margin: .4rem 0; }
summary { cursor: pointer; font-size: .9rem; }
details.excerpt { border: 1px solid var(--line); border-radius: 4px; padding: .35rem .7rem; }
details.excerpt table { margin: .4rem 0 .2rem; table-layout: fixed; }
details.excerpt td:first-child { width: 8rem; }
details.excerpt td:nth-child(2) { width: 8.5rem; }
.said { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: .78rem;
  white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate; }
mark { background: var(--mark); color: black; outline: 1px solid var(--warn); border-radius: 2px; }
.quiet { color: var(--muted); }
dt { font-weight: 600; font-size: .87rem; }
dd { margin: 0 0 .4rem 0; font-size: .87rem; color: var(--muted); }
footer { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: .8rem; font-size: .82rem; }
@media print { body { max-width: none; font-size: 11px; } details > * { display: block; } }
"""
