//! Text in shared memory.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

const WORDS: usize = 29;

/// A path, truncated if it is too long.
#[derive(Debug)]
#[repr(C)]
pub struct Path([AtomicU64; WORDS]);

impl Path {
    /// The length of the longest path, in bytes.
    pub const MAX: usize = WORDS * 8;

    #[allow(clippy::declare_interior_mutable_const)] // each use makes a new path, as intended
    pub const EMPTY: Path = Path([const { AtomicU64::new(0) }; WORDS]);

    /// Stores a path.
    pub fn set(&self, path: &[u8]) {
        for (index, word) in self.0.iter().enumerate() {
            let mut bytes = [0; 8];
            let rest = path.get(index * 8..).unwrap_or_default();
            let length = rest.len().min(8);
            bytes[..length].copy_from_slice(&rest[..length]);
            word.store(u64::from_ne_bytes(bytes), Relaxed);
        }
    }

    /// Whether it is this path, as far as it was stored.
    pub fn is(&self, path: &[u8]) -> bool {
        let mut buffer = [0; Self::MAX];
        self.get(&mut buffer) == &path[..path.len().min(Self::MAX)]
    }

    /// Loads the path into `buffer`.
    pub fn get<'a>(&self, buffer: &'a mut [u8; Self::MAX]) -> &'a [u8] {
        for (word, bytes) in self.0.iter().zip(buffer.chunks_exact_mut(8)) {
            bytes.copy_from_slice(&word.load(Relaxed).to_ne_bytes());
        }
        let end = buffer.iter().position(|&byte| byte == 0);
        &buffer[..end.unwrap_or(Self::MAX)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_path_is_read_back() {
        let path = Path::EMPTY;
        for text in [&b"/usr/lib/libc.so.6"[..], b"", b"/12345678", &[b'x'; 400]] {
            path.set(text);
            assert!(path.is(text));
            assert!(!path.is(b"/other"));
            let kept = &text[..text.len().min(Path::MAX)];
            assert_eq!(path.get(&mut [0; Path::MAX]), kept);
        }
    }
}
