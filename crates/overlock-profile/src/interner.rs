//! Frames and stacks without duplicates.

use std::collections::HashMap;

use crate::{Frame, Profile, Stack};

/// Gives frames and stacks of a [`Profile`] their indices.
#[derive(Debug, Default)]
pub struct Interner {
    frames: HashMap<Frame, u32>,
    stacks: HashMap<Stack, u32>,
}

impl Interner {
    /// For a profile, which may have frames and stacks already.
    pub fn of(profile: &Profile) -> Self {
        let frames = (0..).zip(&profile.frames);
        let stacks = (0..).zip(&profile.stacks);
        Self {
            frames: frames
                .map(|(index, frame)| (frame.clone(), index))
                .collect(),
            stacks: stacks
                .map(|(index, stack)| (stack.clone(), index))
                .collect(),
        }
    }

    /// The index of a frame, which becomes part of the profile.
    pub fn frame(&mut self, profile: &mut Profile, frame: &Frame) -> u32 {
        if let Some(&known) = self.frames.get(frame) {
            return known;
        }
        let index = profile.frames.len() as u32;
        profile.frames.push(frame.clone());
        self.frames.insert(frame.clone(), index);
        index
    }

    /// The index of a stack, the innermost frame first.
    pub fn stack<'a>(
        &mut self,
        profile: &mut Profile,
        frames: impl IntoIterator<Item = &'a Frame>,
    ) -> u32 {
        let frames = frames.into_iter().map(|frame| self.frame(profile, frame));
        let stack = Stack(frames.collect());
        if let Some(&known) = self.stacks.get(&stack) {
            return known;
        }
        let index = profile.stacks.len() as u32;
        profile.stacks.push(stack.clone());
        self.stacks.insert(stack, index);
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_the_same_has_one_index_also_in_a_document_that_was_read() {
        let frame = |function: &str| Frame {
            function: function.to_owned(),
            ..Frame::default()
        };
        let (one, two) = (frame("one"), frame("two"));
        let mut profile = Profile::default();
        let mut interner = Interner::of(&profile);
        assert_eq!(interner.stack(&mut profile, [&one, &two]), 0);
        assert_eq!(interner.stack(&mut profile, [&two]), 1);
        assert_eq!(interner.stack(&mut profile, [&one, &two]), 0);
        let mut again = Interner::of(&profile);
        assert_eq!(again.stack(&mut profile, [&two]), 1);
        assert_eq!(again.stack(&mut profile, [&two, &one]), 2);
        assert_eq!(profile.frames, [one, two]);
        assert_eq!(profile.stacks[2], Stack(vec![1, 0]));
    }
}
