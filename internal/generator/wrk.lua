-- What prony gives to wrk and wrk2: the scenario's requests, and a report that loses nothing.
-- The lines above this text, written for each run, set the locals used here: requests, seed, keyLo,
-- keyHi, raw and out.

-- fill puts a key into a text that was cut at its places.
local function fill(text, key)
   return #text == 1 and text[1] or table.concat(text, key)
end

local function build(r, key)
   local headers = {}
   for _, h in ipairs(r.headers) do headers[h[1]] = fill(h[2], key) end
   local body = fill(r.body, key)
   return wrk.format(r.method, fill(r.path, key), headers, body ~= "" and body or nil)
end

-- number tells the threads apart, so that each draws keys of its own.
local threads = 0
function setup(thread)
   threads = threads + 1
   thread:set("number", threads)
end

local total = 0
for _, r in ipairs(requests) do total = total + r.weight end

function init(args)
   math.randomseed(seed + number)
   for _, r in ipairs(requests) do
      if r.fixed then r.ready = build(r, "") end
   end
   local r = requests[1]
   if #requests == 1 and r.fixed then
      -- No function request: wrk then sends the same bytes without asking Lua.
      wrk.method, wrk.path = r.method, r.path[1]
      wrk.body = r.body[1] ~= "" and r.body[1] or nil
      for _, h in ipairs(r.headers) do wrk.headers[h[1]] = h[2][1] end
   end
end

if #requests > 1 or not requests[1].fixed then
   function request()
      local at, r = math.random(total), requests[1]
      for _, each in ipairs(requests) do
         r, at = each, at - each.weight
         if at <= 0 then break end
      end
      if r.ready then return r.ready end
      return build(r, string.format("%.0f", math.random(keyLo, keyHi)))
   end
end

-- counts reads wrk's table of answers by microsecond where it lies in memory. The way that wrk
-- offers, latency(i), counts up from the shortest time for each of them, which takes minutes after
-- a stall. Whatever does not look as expected gives none.
local function counts(latency)
   local ffi = require("ffi")
   ffi.cdef("typedef struct { uint64_t count, limit, min, max, data[1]; } prony_stats;")
   local s = ffi.cast("prony_stats **", latency)[0]
   local lo, hi = tonumber(s.min), tonumber(s.max)
   if lo ~= latency.min or hi ~= latency.max or hi >= tonumber(s.limit) then return nil end
   local found, sum = {}, 0
   for us = lo, hi do
      local n = tonumber(s.data[us])
      if n > 0 then
         found[#found + 1] = string.format("[%.0f,%.0f]", us, n)
         sum = sum + n
      end
   end
   return sum == tonumber(s.count) and found or nil
end

local function field(name, value)
   if value ~= value then value = 0 end -- the mean of nothing
   return string.format('"%s":%.3f', name, value)
end

function done(summary, latency, requests)
   local e, parts = summary.errors, {
      field("requests", summary.requests), field("us", summary.duration),
      field("bytes", summary.bytes), field("samples", #latency),
   }
   for _, name in ipairs({ "connect", "read", "write", "status", "timeout" }) do
      parts[#parts + 1] = field(name, e[name])
   end
   for _, name in ipairs({ "min", "mean", "max" }) do
      parts[#parts + 1] = field(name, latency[name])
   end
   for name, p in pairs({ p50 = 50, p90 = 90, p99 = 99, p999 = 99.9 }) do
      parts[#parts + 1] = field(name, latency:percentile(p))
   end
   if raw then
      local ok, found = pcall(counts, latency)
      if ok and found then
         parts[#parts + 1] = '"counts":[' .. table.concat(found, ",") .. "]"
      end
   end
   local f = assert(io.open(out, "w"))
   f:write("{", table.concat(parts, ","), "}\n")
   f:close()
end
