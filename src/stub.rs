//! Stands in for the queue and the runtime while they are being written, so
//! that the layer below can be built and tried.
use crate::ffi::QueueValue;

#[derive(Debug, Clone, Default)]
pub struct Queue {
    pub items: Vec<Vec<u8>>,
}

impl QueueValue for Queue {
    const VERSION: u32 = 1;
    fn save(&self, block: &mut dyn FnMut(&[u8])) {
        for item in &self.items {
            let mut bytes = vec![b'i'];
            bytes.extend_from_slice(item);
            block(&bytes);
        }
    }
    fn load(_: u32, next: &mut dyn FnMut() -> Option<Vec<u8>>) -> Result<Self, String> {
        let mut items = Vec::new();
        while let Some(mut block) = next() {
            if block.first() != Some(&b'i') {
                return Err("not an item".into());
            }
            block.remove(0);
            items.push(block);
        }
        Ok(Queue { items })
    }
    fn rewrite(&self, record: &mut dyn FnMut(&[u8])) {
        for item in &self.items {
            record(item);
        }
    }
    fn memory(&self) -> usize {
        self.items.iter().map(|i| i.len() + 24).sum()
    }
    fn effort(&self) -> usize {
        self.items.len()
    }
    fn copy(&self) -> Self {
        self.clone()
    }
    fn digest(&self, part: &mut dyn FnMut(&[u8])) {
        for (n, item) in self.items.iter().enumerate() {
            let mut bytes = n.to_le_bytes().to_vec();
            bytes.extend_from_slice(item);
            part(&bytes);
        }
    }
}
