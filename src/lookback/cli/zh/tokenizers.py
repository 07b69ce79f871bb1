"""What is said of tokenizers and of chat templates."""

from __future__ import annotations

TOKENIZERS = {
    "this tokenizer names no end token; give its eos_token in tokenizer_config.json, or eos_token_id in "
    "generation_config.json": (
        "此分词器没有指明结束词元；请在 tokenizer_config.json 中给出 eos_token，或在 generation_config.json 中给出 "
        "eos_token_id"
    ),
    "this tokenizer has no mask token; use that of a BERT, or one trained here": (
        "此分词器没有掩码词元；请使用 BERT 的分词器，或在这里训练的分词器"
    ),
    "{source} is of a kind that isn't supported: {kind}; supported are byte-level BPE, SentencePiece's BPE, "
    "WordPiece, and what was trained here": (
        "{source} 的类型不受支持：{kind}；支持字节级 BPE、SentencePiece 的 BPE、WordPiece，以及在这里训练的分词器"
    ),
    "{source} is damaged or of no known kind ({reason}); restore it, or get the model again": (
        "{source} 已损坏或不是已知类型（{reason}）；请恢复该文件，或重新获取模型"
    ),
    "{folder} has its tokenizer in tokenizer.model alone, which isn't read; make a tokenizer.json of it once, "
    "with transformers and sentencepiece: AutoTokenizer.from_pretrained(folder).save_pretrained(folder)": (
        "{folder} 的分词器只有 tokenizer.model，本程序不读取它；请用 transformers 和 sentencepiece 转换一次，得到 "
        "tokenizer.json：AutoTokenizer.from_pretrained(folder).save_pretrained(folder)"
    ),
    "{folder} has no tokenizer.json, no vocab.txt, and no vocab.json with merges.txt; give the folder of a model "
    "with its tokenizer": (
        "{folder} 中没有 tokenizer.json，没有 vocab.txt，也没有 vocab.json 和 merges.txt；请给出带有分词器的模型文件夹"
    ),
    "{path} is damaged ({reason}); restore it": "{path} 已损坏（{reason}）；请恢复该文件",
    "the chat template is no valid Jinja: {reason}": "对话模板不是有效的 Jinja：{reason}",
    "the chat template changes or looks into the messages, so {names} in them can't be kept plain text; "
    "take it out": "对话模板会改动或检查消息内容，因此消息中的 {names} 无法保持为普通文字；请去掉它",
    "a message has the role {role}; give each message a role of one word, such as user": (
        "有一条消息的角色是 {role}；请给每条消息一个单词作为角色，例如 user"
    ),
    "the chat template does not take these messages: {reason}": "对话模板不接受这些消息：{reason}",
    "this model has no chat template; it was not tuned to converse: use lookback generate": (
        "此模型没有对话模板，未经对话训练；请使用 lookback generate"
    ),
    "this tokenizer's special tokens are not the first of its vocabulary, so masks cannot leave them out; train a BERT "
    "with a tokenizer learnt here": "此分词器的特殊词元不在词表开头，掩码无法避开它们；请用在这里训练的分词器训练 BERT",
}
