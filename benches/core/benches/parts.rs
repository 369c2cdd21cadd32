//! Measures the parts below the queue: its ordered sets, its snapshot, and extracting fields of JSON.

use criterion::{criterion_group, criterion_main, BatchSize, Criterion, Throughput};
use dq_core_bench::driver::Driver;
use dq_queue::collections::ordered::OrderedSet;
use dq_queue::json::{extract, Path};
use dq_queue::Queue;

/// The allocator of the server.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const MANY: u64 = 1_000_000;

/// Returns the same numbers each time, in no order.
fn scattered(n: u64) -> u64 {
    (n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16
}

fn ordered(c: &mut Criterion) {
    let mut of = c.benchmark_group("ordered set of a million");
    let mut set: OrderedSet<(u64, u64)> = OrderedSet::new();
    for n in 0..MANY {
        set.insert((scattered(n), n), ());
    }
    let mut n = MANY;
    of.bench_function("one in, another out, anywhere", |b| {
        b.iter(|| {
            set.insert((scattered(n), n), ());
            set.remove(&(scattered(n - MANY), n - MANY));
            n += 1;
        })
    });
    let mut set: OrderedSet<(u64, u64)> = OrderedSet::from_sorted((0..MANY).map(|n| ((n, n), ())));
    let mut n = MANY;
    of.bench_function("one in at the end, another out at the front", |b| {
        b.iter(|| {
            set.insert((n, n), ());
            n += 1;
            set.pop_first()
        })
    });
    of.finish();
}

fn snapshot(c: &mut Criterion) {
    const HELD: u64 = 100_000;
    let mut of = c.benchmark_group("snapshot of 100,000");
    of.sample_size(10);
    of.throughput(Throughput::Elements(HELD));
    let mut driver = Driver::new();
    (0..HELD).for_each(|n| driver.send(1 + scattered(n) % MANY, None));
    let mut blocks: Vec<Vec<u8>> = Vec::new();
    driver.queue.save(&mut |block| blocks.push(block.to_vec()));
    of.bench_function("save", |b| {
        b.iter(|| {
            let mut bytes = 0;
            driver.queue.save(&mut |block| bytes += block.len());
            bytes
        })
    });
    of.bench_function("load", |b| {
        b.iter_batched(
            || blocks.clone().into_iter(),
            |mut blocks| Queue::load(Queue::VERSION, &mut || blocks.next()),
            BatchSize::LargeInput,
        )
    });
    of.finish();
}

fn json(c: &mut Criterion) {
    let fill = "x".repeat(900);
    let document = format!(
        r#"{{"no":"{fill}","order":{{"id":"A-17","at":1700000000000}},"list":[1,2,{{"deep":[true,null]}}]}}"#
    );
    let paths =
        ["/order/id", "/order/at"].map(|path| Path::parse(path.as_bytes()).expect("a path"));
    let mut of = c.benchmark_group("JSON of a kilobyte");
    of.throughput(Throughput::Bytes(document.len() as u64));
    of.bench_function("two fields read out", |b| {
        b.iter(|| extract(document.as_bytes(), &paths).map(|found| found.len()))
    });
    of.finish();
}

criterion_group!(parts, ordered, snapshot, json);
criterion_main!(parts);
