//! Reads the arguments of the commands on families: ROUTE, PARTITIONS, NFETCH and
//! NINFO.

use super::fetch::{read_options, FetchRequest};
use super::{Parsed, Words};
use crate::family::{is_name, Partitions, SLOTS};
use crate::quote::quote;

/// The arguments of NFETCH.
#[derive(Debug, Clone, PartialEq)]
pub struct FamilyFetch<'a> {
    /// The name of the family.
    pub family: &'a [u8],
    /// The FETCH that is done in the queue whose turn it is.
    pub request: FetchRequest<'a>,
}

/// Reads the arguments of ROUTE, `family partitions group`: family, partitions and
/// group.
pub fn route(mut words: Words<'_>) -> Parsed<(&[u8], Partitions, &[u8])> {
    let (family, partitions) = (name(&mut words)?, count(&mut words)?);
    let group = words.name("group")?;
    words.end()?;
    Ok((family, partitions, group))
}

/// Reads the arguments of PARTITIONS: `family partitions`
pub fn partitions(mut words: Words<'_>) -> Parsed<(&[u8], Partitions)> {
    let family_and_partitions = (name(&mut words)?, count(&mut words)?);
    words.end()?;
    Ok(family_and_partitions)
}

/// Reads the arguments of NFETCH: `family [options]`. ACK and GROUP are not among
/// the options.
pub fn fetch(mut words: Words<'_>) -> Parsed<FamilyFetch<'_>> {
    let family = name(&mut words)?;
    let request = read_options(words, false)?;
    Ok(FamilyFetch { family, request })
}

/// Reads the arguments of NINFO: `family`
pub fn info(mut words: Words<'_>) -> Parsed<&[u8]> {
    let family = name(&mut words)?;
    words.end()?;
    Ok(family)
}

/// Reads the name of a family.
fn name<'a>(words: &mut Words<'a>) -> Parsed<&'a [u8]> {
    let name = words.name("family")?;
    if !is_name(name) {
        return Err(format!("ERR family must have no braces, not {}", quote(name)).into());
    }
    Ok(name)
}

/// Reads the number of partitions.
fn count(words: &mut Words<'_>) -> Parsed<Partitions> {
    let count = words.number("partitions", 1..=SLOTS)?;
    Partitions::new(count)
        .ok_or_else(|| format!("ERR partitions must be a power of two, not {count}").into())
}
