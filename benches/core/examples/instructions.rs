//! Sends, fetches and acks messages of many groups, so that the instructions can be
//! counted: `scripts/instructions.sh` runs it under callgrind. Unlike time, that does
//! not depend on the caches of a machine.
//!
//! The only argument is the number of groups.

use std::env;
use std::process::ExitCode;

use dq_core_bench::driver::Driver;
use dq_queue::op::Receipts;
use dq_queue::Receipt;

/// Number of operations of each kind that are counted.
const COUNTED: u64 = 20_000;
/// Number of messages in the queue before that. With fewer groups, each has more of them.
const WAITING: u64 = 1_000_000;

fn name(n: u64, groups: u64) -> String {
    let scattered = (n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
    format!("g{}", scattered % groups)
}

#[inline(never)]
fn counted_sends(driver: &mut Driver, names: &[String]) {
    for name in names {
        driver.send(Some(name.as_bytes()));
    }
}

#[inline(never)]
fn counted_fetch(driver: &mut Driver) -> Receipts {
    driver.fetch(1, Receipts::new())
}

#[inline(never)]
fn counted_ack(driver: &mut Driver, receipt: Receipt) {
    driver.ack(receipt);
}

fn main() -> ExitCode {
    let groups = env::args().nth(1).and_then(|groups| groups.parse().ok());
    let Some(groups) = groups.filter(|groups| *groups > 0) else {
        eprintln!("expected one argument: the number of groups, 1 or more");
        return ExitCode::FAILURE;
    };
    let mut driver = Driver::new();
    for n in 0..WAITING {
        driver.send(Some(format!("g{}", n % groups).as_bytes()));
    }
    let names: Vec<String> = (0..COUNTED).map(|n| name(n, groups)).collect();
    counted_sends(&mut driver, &names);
    for _ in 0..COUNTED {
        for receipt in counted_fetch(&mut driver) {
            counted_ack(&mut driver, receipt);
        }
    }
    ExitCode::SUCCESS
}
