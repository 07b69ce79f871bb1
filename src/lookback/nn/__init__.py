"""The parts of a language model: tensors in, tensors out; no files, no state."""
