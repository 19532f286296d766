-- Sends the prepared requests of one file per thread, each request once, and counts the codes of the answers.
--
-- A record is the request's length in five digits, then the request. The first thread that reaches the end of its
-- file ends the run for all, because with less load the run would measure something else. Globals of a thread are
-- only numbers and strings: other types do not reach `done`.

local ffi = require("ffi")

ffi.cdef [[
typedef struct { long s; long ns; } moment;
int clock_gettime(int clock, moment *at);
int kill(int pid, int signal);
int getpid(void);
]]

local MONOTONIC, INTERRUPT = 1, 2
local threads = {}
local at = ffi.new("moment")
local file, counts

local function now_s()
  ffi.C.clock_gettime(MONOTONIC, at)
  return tonumber(at.s) + tonumber(at.ns) / 1e9
end

function setup(thread)
  thread:set("number", #threads)
  table.insert(threads, thread)
end

function init(args)
  file = assert(io.open(args[1] .. "." .. number, "rb"))
  file:setvbuf("full", 1048576)
  counts = {}
  answered, first_s, last_s, used_up, refusals = 0, 0, 0, 0, ""
end

function request()
  local length = file:read(5)
  if length then
    return file:read(tonumber(length))
  end
  used_up = 1
  wrk.thread:stop()
  ffi.C.kill(ffi.C.getpid(), INTERRUPT)
  return "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
end

local function tally(status, body)
  local code = string.match(body, '^{"code":(%d+),') or ("HTTP" .. status)
  counts[code] = (counts[code] or 0) + 1
  local parts = {}
  for name, count in pairs(counts) do
    parts[#parts + 1] = '"' .. name .. '":' .. count
  end
  refusals = table.concat(parts, ",")
end

function response(status, headers, body)
  if used_up == 1 then
    return
  end
  last_s = now_s()
  if answered == 0 then
    first_s = last_s
  end
  answered = answered + 1
  if string.sub(body, 1, 12) ~= '{"code":200,' then
    tally(status, body)
  end
end

function done(summary, latency, requests)
  local parts = {}
  for index, thread in ipairs(threads) do
    parts[index] = string.format(
      '{"answered":%d,"seconds":%.6f,"used_up":%s,"refusals":{%s}}',
      thread:get("answered"), thread:get("last_s") - thread:get("first_s"),
      thread:get("used_up") == 1 and "true" or "false", thread:get("refusals"))
  end
  local errors = summary.errors
  io.write(string.format(
    'result: {"threads":[%s],"p50_us":%d,"p99_us":%d,"max_us":%d,'
      .. '"errors":{"connect":%d,"read":%d,"write":%d,"timeout":%d}}\n',
    table.concat(parts, ","), latency:percentile(50), latency:percentile(99), latency.max,
    errors.connect, errors.read, errors.write, errors.timeout))
end
