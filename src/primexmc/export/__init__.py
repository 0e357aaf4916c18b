"""A model for other people's programs: vector databases, sentence-transformers, ONNX, the Hugging Face hub."""
