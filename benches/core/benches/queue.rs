//! Measures whole operations on a queue, with their log entries. The core's share of the cost of a
//! command is known from this.

use criterion::{criterion_group, criterion_main, BatchSize, Criterion, Throughput};
use dq_core_bench::driver::Driver;
use dq_queue::message::state::State;
use dq_queue::op::{Op, Receipts};

/// The allocator of the server.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const MANY: u64 = 1_000_000;
const HOUR: u64 = 3_600_000;

/// Returns the same numbers each time, in no order.
fn scattered(n: u64) -> u64 {
    let mixed = (n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 20
}

fn with_delayed(count: u64) -> Driver {
    let mut driver = Driver::new();
    (0..count).for_each(|n| driver.send(HOUR + scattered(n) % HOUR, None));
    driver
}

fn with_ready(count: u64) -> Driver {
    let mut driver = Driver::new();
    (0..count).for_each(|_| driver.send(0, None));
    driver
}

fn with_groups(count: u64, groups: u64) -> Driver {
    let mut driver = Driver::new();
    (0..count).for_each(|n| driver.send(0, Some(group(n, groups).as_bytes())));
    driver
}

fn group(n: u64, groups: u64) -> String {
    format!("g{}", scattered(n) % groups)
}

fn sending(c: &mut Criterion) {
    let mut of = c.benchmark_group("send");
    of.throughput(Throughput::Elements(1));
    let mut driver = Driver::new();
    of.bench_function("due now", |b| b.iter(|| driver.send(0, None)));
    let mut driver = with_delayed(MANY);
    let mut n = MANY;
    of.bench_function("delayed, into a million", |b| {
        b.iter(|| {
            n += 1;
            driver.send(HOUR + scattered(n) % HOUR, None)
        })
    });
    for groups in [1, 1_000, 100_000, 1_000_000] {
        let mut driver = with_groups(groups, groups);
        let mut n = groups;
        of.bench_function(format!("{groups} groups"), |b| {
            b.iter_batched(
                || {
                    n += 1;
                    group(n, groups)
                },
                |name| driver.send(0, Some(name.as_bytes())),
                BatchSize::SmallInput,
            )
        });
    }
    of.finish();
}

/// Measures a message that is sent, fetched and acked. The queue keeps its size.
fn rounds(c: &mut Criterion) {
    let mut of = c.benchmark_group("send, fetch, ack");
    of.throughput(Throughput::Elements(1));
    for held in [10_000, MANY] {
        let mut driver = with_ready(held);
        of.bench_function(format!("{held} ready"), |b| {
            b.iter(|| {
                driver.send(0, None);
                for receipt in driver.fetch(1, Receipts::new()) {
                    driver.ack(receipt);
                }
            })
        });
    }
    let mut driver = with_groups(MANY, 100_000);
    let mut n = MANY;
    of.bench_function("100,000 groups", |b| {
        b.iter(|| {
            n += 1;
            driver.send(0, Some(group(n, 100_000).as_bytes()));
            for receipt in driver.fetch(1, Receipts::new()) {
                driver.ack(receipt);
            }
        })
    });
    let mut driver = with_ready(10_000);
    let mut acks = Receipts::new();
    of.throughput(Throughput::Elements(10));
    of.bench_function("tens", |b| {
        b.iter(|| {
            (0..10).for_each(|_| driver.send(0, None));
            acks = driver.fetch(10, std::mem::take(&mut acks));
        })
    });
    of.finish();
}

/// Measures bursts, which the timer processes in slices.
fn bursts(c: &mut Criterion) {
    const BURST: u64 = 100_000;
    let mut of = c.benchmark_group("burst of 100,000");
    of.sample_size(10);
    of.throughput(Throughput::Elements(BURST));
    of.bench_function("falls due", |b| {
        b.iter_batched_ref(
            || {
                let mut driver = Driver::new();
                (0..BURST).for_each(|_| driver.send(HOUR, None));
                driver.pass(2 * HOUR);
                driver
            },
            Driver::advance,
            BatchSize::LargeInput,
        )
    });
    of.bench_function("leases end", |b| {
        b.iter_batched_ref(
            || {
                let mut driver = with_ready(BURST);
                (0..BURST / 1000).for_each(|_| drop(driver.fetch(1000, Receipts::new())));
                driver.pass(HOUR);
                driver
            },
            Driver::advance,
            BatchSize::LargeInput,
        )
    });
    of.bench_function("is purged, one by one", |b| {
        b.iter_batched_ref(
            || with_delayed(BURST),
            |driver| {
                driver.apply(&Op::Purge {
                    state: Some(State::Delayed),
                    group: None,
                })
            },
            BatchSize::LargeInput,
        )
    });
    of.finish();
}

criterion_group!(queue, sending, rounds, bursts);
criterion_main!(queue);
