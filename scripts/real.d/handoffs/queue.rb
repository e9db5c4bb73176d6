# A thread sends numbers to another, which sends them back, by two queues: queue.rb SECONDS

seconds = Integer(ARGV.fetch(0))
there = Queue.new
back = Queue.new
thread = Thread.new do
  while (number = there.pop)
    back << number
  end
end

def now
  Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

count = 0
start = now
while now - start < seconds
  there << count
  abort "wrong: another number than #{count} came back" if back.pop != count
  count += 1
end
took = now - start
there << nil
thread.join
puts "per second: #{(count / took).round}"
