-- Lets the Prometheus exporter for Redis carry the figures of the whole server: prometheus-redis-exporter -script FILE.
-- They come as redis_script_values{key="dq_ready"} and so on. Queues one by one: dq exporter.
local values = {}
-- Only what is a number to the end of its line. A revision may happen to have digits only.
for name, value in string.gmatch(redis.call('INFO', 'dq'), '(dq_[%w_]+):(%d+)\r') do
    if name ~= 'dq_revision' then
        values[#values + 1] = name
        values[#values + 1] = value
    end
end
return values
