//! The words of an action. `@1` is the first running receipt of the queue, by number, `@2` the
//! second. `@0` is one that no delivery has. `+8` is the time of the queue and 8 ms, and `''` an
//! empty word.

use super::World;

impl World {
    /// The words with receipts and times put in. `None` if a message does not run that the action
    /// is about.
    pub fn words(&self, text: &str) -> Option<Vec<Vec<u8>>> {
        let key = text.split(' ').nth(1).unwrap_or_default().as_bytes();
        let mut words = Vec::new();
        let mut running = None;
        for word in text.split(' ') {
            let read = |from: &str| from.parse::<u64>().ok();
            let put = match word.as_bytes() {
                [b'@', rest @ ..] => {
                    let number = read(std::str::from_utf8(rest).ok()?)?;
                    let place = self.places.get(key)?;
                    let running = running.get_or_insert_with(|| place.running());
                    match number {
                        0 => "1".to_owned(),
                        number => running.get(number as usize - 1)?.to_string(),
                    }
                }
                [b'+', rest @ ..] => {
                    let ms = read(std::str::from_utf8(rest).ok()?)?;
                    (self.time_of(key) + ms).to_string()
                }
                b"''" => String::new(),
                _ => word.to_owned(),
            };
            words.push(put.into_bytes());
        }
        Some(words)
    }
}
