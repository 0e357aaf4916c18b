"""Encoders so small that a test can run them hundreds of times; made from configurations, nothing is downloaded."""

from __future__ import annotations

import numpy as np
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from primexmc.model.static import StaticEncoder
from primexmc.model.token_batch import TokenBatch

THINGS = ["boat", "river", "horse", "tree", "castle", "bridge", "church", "mountain", "dog", "ship"]
WORDS = ["a", "painting", "of", "and", "query", "passage", ":", ",", "red", "old", *THINGS]
DIM = 16

# kind -> (special tokens in the order of their ids, configuration class, arguments)
COMMON = {"hidden_size": DIM, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
BERT_TOKENS, ROBERTA_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"], ["<s>", "<pad>", "</s>", "<unk>"]
KINDS = {
    "bert": (BERT_TOKENS, "BertConfig", COMMON | {"max_position_embeddings": 40}),
    "minilm": (BERT_TOKENS, "BertConfig", COMMON | {"num_hidden_layers": 3, "max_position_embeddings": 40}),
    "e5": (BERT_TOKENS, "BertConfig", COMMON | {"max_position_embeddings": 40, "hidden_act": "gelu"}),
    "distilbert": (
        BERT_TOKENS,
        "DistilBertConfig",
        {"dim": DIM, "n_layers": 2, "n_heads": 2, "hidden_dim": 24, "max_position_embeddings": 40},
    ),
    "roberta": (ROBERTA_TOKENS, "RobertaConfig", COMMON | {"max_position_embeddings": 42, "pad_token_id": 1}),
    "mpnet": (ROBERTA_TOKENS, "MPNetConfig", COMMON | {"max_position_embeddings": 42, "pad_token_id": 1}),
    "modernbert": (
        BERT_TOKENS,
        "ModernBertConfig",
        COMMON
        | {"num_hidden_layers": 4, "local_attention": 6, "global_attn_every_n_layers": 3, "pad_token_id": 0}
        | {"bos_token_id": 2, "cls_token_id": 2, "eos_token_id": 3, "sep_token_id": 3, "max_position_embeddings": 40},
    ),
}


def tokenizer(special=BERT_TOKENS, *, adds_special_tokens=True):
    """One id a word."""
    ids = {word: number for number, word in enumerate([*special, *WORDS])}
    unknown = next(word for word in special if "unk" in word.lower())
    made = Tokenizer(WordLevel(ids, unk_token=unknown))
    made.normalizer, made.pre_tokenizer = Lowercase(), Whitespace()
    made.add_special_tokens(special)
    if adds_special_tokens:
        first, last = (special[2], special[3]) if special == BERT_TOKENS else (special[0], special[2])
        pair = f"{first} $A {last} $B {last}"
        made.post_processor = TemplateProcessing(
            single=f"{first} $A {last}", pair=pair, special_tokens=[(first, ids[first]), (last, ids[last])]
        )
    return made


def save_hugging_face(directory, kind, *, seed=0, **changes):
    """A random model of this kind with its tokenizer, as `save_pretrained` leaves it."""
    import transformers

    special, config_class, arguments = KINDS[kind]
    made = tokenizer(special)
    config = getattr(transformers, config_class)(vocab_size=made.get_vocab_size(), **(arguments | changes))
    torch.manual_seed(seed)
    model = transformers.AutoModel.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():  # as drawn, all texts are nearly alike
            parameter.add_(0.3 * torch.randn_like(parameter))
    model.save_pretrained(directory)
    roles = ("pad", "unk", "cls", "sep") if special == BERT_TOKENS else ("bos", "pad", "eos", "unk")
    names = {f"{role}_token": token for role, token in zip(roles, special, strict=True)}
    transformers.PreTrainedTokenizerFast(tokenizer_object=made, **names).save_pretrained(directory)
    return directory


def static_encoder(*, seed=0, dim=DIM, dropout=-1.0):
    rng = np.random.default_rng(seed)
    made = tokenizer(adds_special_tokens=False)
    vectors = torch.from_numpy(rng.normal(size=(made.get_vocab_size(), dim)).astype(np.float32))
    weights = torch.from_numpy(rng.uniform(0.5, 1.5, made.get_vocab_size()).astype(np.float32))
    return StaticEncoder(vectors, weights, made, dropout)


def batch_of(encoder, texts, device="cpu"):
    """Tokenised without the code that training uses."""
    rows = [encoder.tokenizer.encode(text, add_special_tokens=encoder.add_special_tokens).ids for text in texts]
    return batch_of_rows(rows, device)


def batch_of_rows(rows, device="cpu"):
    offsets = np.zeros(len(rows) + 1, dtype=np.int64)
    offsets[1:] = np.cumsum([len(row) for row in rows])
    return TokenBatch.from_arrays(np.array([i for row in rows for i in row], np.int64), offsets, torch.device(device))


def random_texts(seed, size, longest=12):
    """Some are empty, some alike."""
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, rng.integers(0, longest + 1))) for _ in range(size)]
