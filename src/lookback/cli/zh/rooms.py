"""What the rooms below the command line say (errors and warnings), in Chinese."""

from __future__ import annotations

ROOMS = {
    # data
    "there are {tokens} tokens and one window needs {width}; use a smaller context or more text": (
        "只有 {tokens} 个词元，而一个窗口需要 {width} 个；请减小上下文长度，或提供更多文本"
    ),
    "{path} cannot be read ({reason}); give a file or folder that can be": (
        "无法读取 {path}（{reason}）；请给出可读的文件或文件夹"
    ),
    "{path} is a binary file (there are zero bytes in it), not text; if it is UTF-16 text, say --encoding utf-16": (
        "{path} 是二进制文件（含有零字节），不是文本；如果它是 UTF-16 文本，请加上 --encoding utf-16"
    ),
    "{path} is not {encoding} text at byte {position}; name its encoding, for example --encoding {example}": (
        "{path} 在第 {position} 字节处不是 {encoding} 文本；请指明编码，例如 --encoding {example}"
    ),
    "{name} is bundled and has no encoding to choose; leave out --encoding {encoding}": (
        "{name} 是自带语料，不能选择编码；请去掉 --encoding {encoding}"
    ),
    "{source} has no .jsonl file to read the field {field} from; leave that option out": (
        "{source} 中没有可读取字段 {field} 的 .jsonl 文件；请去掉这个选项"
    ),
    "{folder} holds no text; files that end in {endings} count": "{folder} 中没有文本；只读取以 {endings} 结尾的文件",
    'line {line} of {path} is not an object; write it as {{"text": "…"}}': (
        '{path} 第 {line} 行不是 JSON 对象；请写成 {{"text": "…"}}'
    ),
    "line {line} of {path} has no field {field}; name one that it has with --field: {fields}": (
        "{path} 第 {line} 行没有字段 {field}；请用 --field 指定其中已有的字段：{fields}"
    ),
    "field {field} in line {line} of {path} is not a string; it must be text": (
        "{path} 第 {line} 行的字段 {field} 不是字符串；它必须是文本"
    ),
    "{name} has no text in it; give a corpus with some text": "{name} 中没有文本；请给出含有文本的语料",
    "{encoding} is no text encoding known here; use for example utf-8, gb18030, big5 or utf-16": (
        "{encoding} 不是已知的文本编码；可以使用例如 utf-8、gb18030、big5 或 utf-16"
    ),
    "{path} is empty; give a corpus with some text in it": "{path} 是空的；请给出含有文本的语料",
    "line {line} of {path} is not JSON; write one object on each line": (
        "{path} 第 {line} 行不是 JSON；请每行写一个对象"
    ),
    "field {field} in line {line} of {path} holds half a character (a lone surrogate); write it whole": (
        "{path} 第 {line} 行的字段 {field} 中有半个字符（落单的代理码位）；请写出完整的字符"
    ),
    "{path} is neither a file nor a folder; give a text file or a folder of them": (
        "{path} 既不是文件也不是文件夹；请给出文本文件，或存放文本文件的文件夹"
    ),
    "{path} does not exist; give a text file, a folder of .txt, .md and .jsonl files or one of: {bundled}": (
        "{path} 不存在；请给出文本文件，含 .txt、.md、.jsonl 文件的文件夹，或以下自带语料之一：{bundled}"
    ),
    "{word} is not among the ambiguous words: {words}": "{word} 不在多义词之列：{words}",
    "{name} = {number} is not possible; it may be {least} to {most}": (
        "不能取 {name} = {number}；允许的范围是 {least} 到 {most}"
    ),
    "another run is preparing other data in {folder}; give each run its own folder": (
        "另一次运行正在 {folder} 中准备别的数据；请让每次运行使用各自的文件夹"
    ),
    "{name} is too small: {train} of its tokens would be trained on and {held_out} held out, and at least 2 and "
    "{least} are needed; give more text": (
        "{name} 太小：可用于训练的词元有 {train} 个，可留出的有 {held_out} 个，而至少需要 2 个和 {least} "
        "个；请提供更多文本"
    ),
    "{hold_out} is no way to hold text out; use one of: {allowed}": "{hold_out} 不是可用的留出方式；可选：{allowed}",
    "a held-out fraction of {fraction} is not between 0 and 1; use for example 0.1": (
        "留出比例 {fraction} 不在 0 和 1 之间；请使用例如 0.1"
    ),
    "one document alone cannot be divided by documents; use --hold-out position": (
        "只有一篇文档，无法按文档划分；请使用 --hold-out position"
    ),
    # tokenizers
    "{token} is no token of this tokenizer; its ids go from 0 to {last}": (
        "{token} 不是此分词器的词元编号；编号从 0 到 {last}"
    ),
    "{kind} is no kind of token; allowed: character, word, bpe, wordpiece": (
        "{kind} 不是可用的分词方式；可选：character、word、bpe、wordpiece"
    ),
    "a vocabulary of {vocabulary} is too small for {kind} tokens; ask for {least} or more": (
        "大小为 {vocabulary} 的词表对 {kind} 来说太小；请至少取 {least}"
    ),
    "a sample of {sample_bytes} bytes is no text; ask for 1 or more": "{sample_bytes} 字节的样本不成文本；请至少取 1",
    "there is no text to learn tokens from; give a text that isn't empty": "没有可用来学习词表的文本；请给出非空的文本",
    "the text has a lone surrogate (U+{code:04X}) at position {position}, which is no character; read the text "
    "with its right encoding": (
        "文本在位置 {position} 处有落单的代理码位（U+{code:04X}），它不是字符；请用正确的编码读取文本"
    ),
    "words of Chinese text are found by jieba, which is not installed; run: pip install jieba": (
        "中文文本靠 jieba 分词，但尚未安装 jieba；请运行：pip install jieba"
    ),
    "the character {character} (U+{code:04X}) at position {position} is not in the vocabulary; leave it out, or "
    "train with a text that has it or with an unknown token": (
        "位置 {position} 处的字符 {character}（U+{code:04X}）不在词表中；请去掉它，或用含有它的文本训练，或在训练时启"
        "用未知词元"
    ),
    "{path} can't be read: {reason}": "无法读取 {path}：{reason}",
    # models
    "{got} tokens are more than this model's context of {context}; shorten the text": (
        "{got} 个词元超过了此模型的上下文长度 {context}；请缩短文本"
    ),
    "{got} is not a cell; allowed: {allowed}": "{got} 不是可用的循环单元；可选：{allowed}",
    "{got} is not a model family; allowed: {allowed}": "{got} 不是可用的模型类型；可选：{allowed}",
    "{got} is not a preset; allowed: {allowed}": "{got} 不是可用的预设；可选：{allowed}",
    "the preset {preset} is a GPT's; for {family} use tiny or small, or a budget with --parameters": (
        "预设 {preset} 只用于 GPT；{family} 请使用 tiny 或 small，或用 --parameters 给出参数量预算"
    ),
    "{got} is not a style; allowed: {allowed}": "{got} 不是可用的结构风格；可选：{allowed}",
    "a width of {width} does not divide into {heads} heads; choose a multiple, or a --head-width": (
        "宽度 {width} 不能平均分给 {heads} 个注意力头；请取头数的倍数，或指定 --head-width"
    ),
    "a style is a Transformer's; {family} has none: drop the style": (
        "结构风格只用于 Transformer，{family} 没有这一项；请去掉它"
    ),
    "{got} is not a cell of {family}; allowed: {allowed}": "{got} 不是 {family} 的循环单元；可选：{allowed}",
    "forget_bias is an LSTM's; {family} has no forget gate: drop the option": (
        "forget_bias 只用于 LSTM，{family} 没有遗忘门；请去掉这个选项"
    ),
    "the width and a parameter budget cannot both be set; drop one of the two options": (
        "不能同时指定宽度和参数量预算；请去掉其中一个选项"
    ),
    "no {family} with a vocabulary of {vocabulary} comes within 2% of {budget} parameters; the nearest has "
    "{nearest}: change the budget or the vocabulary": (
        "词表大小为 {vocabulary} 时，没有参数量与 {budget} 相差 2% 以内的 {family}，最接近的有 {nearest} "
        "个参数；请更改预算或词表大小"
    ),
    "{family} has no option {name}; it has: {known}": "{family} 没有选项 {name}；可用的有：{known}",
    "{name} is {got}; it must be at least 1": "{name} 为 {got}；它至少应为 1",
    "dropout is {got}; it must be at least 0 and below 1": "dropout 为 {got}；它必须大于等于 0 且小于 1",
    "{heads} heads cannot share {kv_heads} key/value heads evenly; choose a divisor of the heads": (
        "{heads} 个注意力头不能平均共享 {kv_heads} 个键值头；键值头数须整除注意力头数"
    ),
    "rotary positions turn pairs, so the head width must be even, not {got}; change width or heads": (
        "旋转位置编码成对旋转，所以注意力头的宽度必须是偶数，不能是 {got}；请更改宽度或头数"
    ),
    "tied queries and keys need as many key/value heads as heads; drop one of the two options": (
        "查询与键共用矩阵时，键值头数必须等于注意力头数；请去掉其中一个选项"
    ),
    "a sliding window goes with the causal mask only; drop one of the two options": (
        "滑动窗口只能与因果掩码一起使用；请去掉其中一个选项"
    ),
    "windowed_layers {got} need a sliding window and layers from 0 to {last}; change one of the three": (
        "windowed_layers {got} 需要滑动窗口，且层号须在 0 到 {last} 之间；请更改三者之一"
    ),
    "{got} is not a kind of {name}; allowed: {allowed}": "{got} 不是可用的 {name}；可选：{allowed}",
    "a model that reads both sides has no cache that stays valid: one new token changes every earlier one; run it "
    "without a state": "双向阅读的模型没有持续有效的缓存：新增一个词元，此前的每个位置都会改变；请不带状态运行",
    "{name} is {got}; it must be at most {most}": "{name} 为 {got}；最大只能是 {most}",
    "forget_bias is {got}; it must be a finite number": "forget_bias 为 {got}；它必须是有限数",
    "this model is an encoder without an output head, so it predicts no tokens; use its hidden states": (
        "此模型是没有输出头的编码器，不能预测词元；请使用它的隐藏状态"
    ),
    # weights
    "{path} names sizes that no model can have": "{path} 中的尺寸不是任何模型可能有的",
    "{path} has {got} for {name}, which cannot be": "{path} 中 {name} 的值 {got} 不可用",
    "{path} is not a model folder; give one that lookback train made or a Hugging Face one, a GGUF file, or "
    "hf:owner/name": (
        "{path} 不是模型文件夹；请给出由 lookback train 生成的文件夹、Hugging Face 文件夹、GGUF 文件或 hf:owner/name"
    ),
    "{path} is a file; of single files, GGUF (.gguf) ones open: give the model's folder": (
        "{path} 是文件；单个文件只能打开 GGUF（.gguf），请给出模型的文件夹"
    ),
    "{path} holds numbers of type {got}; this version reads {allowed}": (
        "{path} 中数值的类型是 {got}；此版本能读取：{allowed}"
    ),
    "{path} holds {name}, which another shard holds already": "{path} 中的 {name} 已在另一个分片中出现",
    "{path} has no weight_map of file names": "{path} 中没有由文件名组成的 weight_map",
    "{path} names files outside its folder: {names}": "{path} 指向了所在文件夹之外的文件：{names}",
    "{path} is pickled, and opening it could run anything; convert it once, where you trust it, with transformers: "
    "AutoModel.from_pretrained(folder).save_pretrained(out)": (
        "{path} 是 pickle 文件，打开它可能运行任意代码；请在可信的环境中用 transformers 转换一次："
        "AutoModel.from_pretrained(folder).save_pretrained(out)"
    ),
    "{path} ties {twin} to {original} by its config.json, but holds two that differ; set tie_word_embeddings to "
    "false if they should": (
        "{path} 的 config.json 声明 {twin} 与 {original} 共享，但文件中的两者不同；若本应不同，请把 "
        "tie_word_embeddings 设为 false"
    ),
    "{path} is not a whole GGUF file: {reason}": "{path} 不是完整的 GGUF 文件：{reason}",
    "there is no file {path}": "没有文件 {path}",
    "{path} holds a {got} model; this version opens {allowed}": "{path} 中是 {got} 模型；此版本能打开：{allowed}",
    "{path} scales its {family} rotary positions by factors that are not Llama 3's; supported: {kinds}": (
        "{path} 中 {family} 旋转位置编码的缩放因子与 Llama 3 的不同；支持：{kinds}"
    ),
    "{path} scales its rotary positions in ways that are not read: {names}": (
        "{path} 的旋转位置编码含有此版本不能读取的缩放设置：{names}"
    ),
    "this model's rotary positions cannot be scaled so: {got}": "此模型的旋转位置编码不能这样缩放：{got}",
    "{path} holds {name} as {kind}, which the gguf package cannot turn into numbers; take a file of another type, such "
    "as Q8_0 or Q4_K_M": (
        "{path} 中的 {name} 为 {kind} 类型，gguf 软件包无法还原其数值；请换用其他类型的文件，例如 Q8_0 或 Q4_K_M"
    ),
    "this {family} model has a rope_scaling that is no record: {got}": (
        "此 {family} 模型的 rope_scaling 不是一组设置：{got}"
    ),
    "this {family} model scales its rotary positions by {kind}; supported: {kinds}": (
        "此 {family} 模型的旋转位置编码按 {kind} 缩放；支持：{kinds}"
    ),
    "this {family} model has {name} = {got}; supported: {allowed}": (
        "此 {family} 模型的 {name} = {got}；支持：{allowed}"
    ),
    "{got} is not a hub name; write hf:owner/name or modelscope:owner/name": (
        "{got} 不是模型库中的名称；请写成 hf:owner/name 或 modelscope:owner/name"
    ),
    "{got} needs the package {package}; pip install {package}": (
        "{got} 需要软件包 {package}；请运行 pip install {package}"
    ),
    "{got} could not be had from the hub: {reason}": "无法从模型库取得 {got}：{reason}",
    "Hugging Face has no architecture for a {family}; it can be taken elsewhere as our own folder only "
    "(config.json, model.safetensors, tokenizer.json): --to lookback": (
        "Hugging Face 没有 {family} 对应的架构；只能以我们自己的文件夹形式（config.json、model.safetensors、"
        "tokenizer.json）导出：--to lookback"
    ),
    "Hugging Face has no architecture with exactly these options; the nearest, {nearest}, differs in {options}": (
        "Hugging Face 没有选项完全相同的架构；最接近的 {nearest} 在以下选项上不同：{options}"
    ),
    "{path} says model_type {got}; this version opens {allowed}": (
        "{path} 中的 model_type 为 {got}；此版本能打开：{allowed}"
    ),
    "{path} has options this version does not know: {names}": "{path} 中有此版本不认识的选项：{names}",
    "{path} holds no JSON object": "{path} 中不是 JSON 对象",
    "{path} does not fit its config.json: {wrong}": "{path} 与其 config.json 不符：{wrong}",
    "{path} holds {got} tensors, too few for the {layers} layers that its config.json names": (
        "{path} 中有 {got} 个张量，不够其 config.json 所写的 {layers} 层使用"
    ),
    "{path} is not a configuration: {reason}": "{path} 不是有效的模型配置：{reason}",
    "{path} is missing; the folder is not a whole model": "缺少 {path}；该文件夹不是完整的模型",
    "{path} is not JSON: {reason}": "{path} 不是 JSON：{reason}",
    "{path} is not a whole safetensors file: {reason}": "{path} 不是完整的 safetensors 文件：{reason}",
    "{path} pools by {got}; supported: {allowed}": "{path} 的池化方式是 {got}；支持：{allowed}",
    "{path} is no list of modules": "{path} 不是模块列表",
    # evaluation
    "a {family} reads both sides, so what follows would be known to it; score it with masks instead": (
        "{family} 能看到两侧的文本，等于已经知道后文；请改用掩码方式评分"
    ),
    "a stride of {got} does not fit a window of {window}; it must be 1 to {window}": (
        "步长 {got} 与大小为 {window} 的窗口不符；它必须在 1 到 {window} 之间"
    ),
    "a {family} carries its state through the whole text, so there is no window to move by a stride; give a window "
    "too, or drop the stride": "{family} 让状态贯穿全文，没有可按步长移动的窗口；请同时给出窗口，或去掉步长",
    "a {family} reads the left side only, so masks say little about it; score it from left to right instead": (
        "{family} 只看左侧的文本，用掩码评分说明不了什么；请改为从左到右评分"
    ),
    "there is no text to score, only special tokens; give a text that the tokenizer knows": (
        "没有可评分的文本，只有特殊词元；请给出分词器认识的文本"
    ),
    "there is no text to score; give a text that is not empty": "没有可评分的文本；请给出非空的文本",
    "a window of {got} tokens is not possible; this model takes 1 to {most}": (
        "窗口不能取 {got} 个词元；此模型允许 1 到 {most}"
    ),
    "the {name} is {got}; it must be at least 1": "{name} 为 {got}；至少应为 1",
    # generation
    "a {family} reads the left side only, so it can't fill a gap from both sides; use generate to write on": (
        "{family} 只看左侧的文本，不能根据两侧填空；续写请用 generate"
    ),
    "there is no mask to fill; put [MASK] into the text where something is missing": (
        "没有可填的掩码；请在文本中空缺的地方写上 [MASK]"
    ),
    "{got} fills can't be given; ask for 1 to {most}": "无法给出 {got} 个候选；可取 1 到 {most}",
    "a {family} read both sides of every gap in training and has no probabilities for what follows a text, so it "
    "can't write well; use fill for masks, or --anyway to see what comes of it": (
        "{family} 在训练时看到每个空缺的两侧，没有后文的概率分布，因此写不好文章；填空请用 fill，想看看效果可加 "
        "--anyway"
    ),
    "the number of new tokens is {got}; it must be 0 or more": "新词元数为 {got}；它必须大于等于 0",
    "the seed is {got}; it must be from 0 to 2⁶⁴ − 1": "随机种子为 {got}；它必须在 0 到 2⁶⁴ − 1 之间",
    "the chunk is {got} tokens; it must be at least 1": "分块大小为 {got} 个词元；至少应为 1",
    "a prompt is empty; give at least one token to go on from": "提示词为空；请至少给出一个词元",
    "the prompt has {got} tokens, more than this model's context of {context}; shorten it, or use --slide to go on "
    "from its newest ones": (
        "提示词有 {got} 个词元，超过了此模型的上下文长度 {context}；请缩短它，或用 --slide 从最后的词元续写"
    ),
    "the model gives logits that are not numbers (NaN or all −∞), so nothing can be chosen; its training has "
    "diverged or its file is damaged: train or load it again": (
        "模型给出的 logits 不是数（NaN 或全为 −∞），无法选出词元；可能是训练发散或文件损坏，请重新训练或重新加载"
    ),
    "the temperature is {got}; it must be 0 or more, and finite": "温度为 {got}；它必须是大于等于 0 的有限数",
    "top-k is {got}; it must be at least 1": "top-k 为 {got}；至少应为 1",
    "top-p is {got}; it must be above 0 and at most 1": "top-p 为 {got}；它必须大于 0 且不超过 1",
    "min-p is {got}; it must be from 0 to 1": "min-p 为 {got}；它必须在 0 到 1 之间",
    "the repetition penalty is {got}; it must be above 0, and finite": "重复惩罚为 {got}；它必须是大于 0 的有限数",
    "a text to embed is empty; give at least one token each": "要嵌入的文本为空；每段请至少给出一个词元",
    "a stop string is empty; give at least one character, or no stop string": (
        "停止文本为空；请至少给出一个字符，或不设停止文本"
    ),
    # training
    "{path} is not a record of progress; the checkpoint is damaged": "{path} 不是训练进度记录；检查点已损坏",
    "{path} is not this run's checkpoint: its tensors have other names or shapes": (
        "{path} 不是这次训练的检查点：其中张量的名称或形状不同"
    ),
    "training ends by one of steps, tokens and minutes; {got} given: set exactly one": (
        "训练以 steps、tokens、minutes 之一作为结束条件，目前给出的是：{got}；请只设一个"
    ),
    "{got} is not a decay; allowed: cosine, linear, none": "{got} 不是可用的衰减方式；可选：cosine、linear、none",
    "{name} is {got}; it must be more than 0": "{name} 为 {got}；它必须大于 0",
    "{name} is {got}; it must be from {low} to {high}": "{name} 为 {got}；它必须在 {low} 到 {high} 之间",
    "the loss is not finite at step {step}; lower the learning rate (it is {rate})": (
        "第 {step} 步的损失不是有限数；请降低学习率（目前为 {rate}）"
    ),
    "the model has begun to memorise: its training loss is {loss} nats a token, far under {held_out} on held-out "
    "text; train for fewer steps, on more text, with a smaller model or with dropout": (
        "模型已开始死记训练文本：训练损失为每词元 {loss} 奈特，远低于留出部分的 {held_out}；请减少训练步数、增加文本、"
        "缩小模型或使用 dropout"
    ),
    "held-out text costs the model only {got} bits a byte, where a compressor (LZMA) needs {compressed}: a loss "
    "this low most often means that the model sees its answers (check the mask and the split)": (
        "留出部分每字节只需 {got} 比特，而压缩程序（LZMA）需要 {compressed}；损失低到这种程度，多半是模型看到了答案（"
        "请检查掩码和划分）"
    ),
    # session
    "{got} is not a format; allowed: {allowed}": "{got} 不是可用的格式；可选：{allowed}",
    "{path} is not empty; choose another folder": "{path} 不是空文件夹；请另选一个",
    "the exported model's logits differ by {difference}, more than {bound}; it was not kept": (
        "导出模型的 logits 相差 {difference}，超过了 {bound}；未予保留"
    ),
    "there is no run to go on with in {path}; train without --resume first": (
        "{path} 中没有可以继续的训练；请先不带 --resume 训练"
    ),
    "a training length of {length} is more than the model's context of {context}; lower it or raise --context": (
        "训练长度 {length} 超过了模型的上下文长度 {context}；请减小它，或增大 --context"
    ),
    "{path} is not empty; choose another --out, or go on with --resume": (
        "{path} 不是空文件夹；请另选 --out，或用 --resume 继续训练"
    ),
    "{path} does not say how the run was begun; it cannot be gone on with": "{path} 没有记下训练是如何开始的，无法继续",
    "the run in {path} has {name} {stored}, not {got}; a resumed run keeps its options: leave it out": (
        "{path} 中的训练使用的 {name} 是 {stored}，不是 {got}；继续训练时选项不变，请去掉它"
    ),
    "the run in {path} was begun with another text than {name} is now; bring that one back, or train anew": (
        "{path} 中的训练开始时所用的文本与现在的 {name} 不同；请找回原来的文本，或重新训练"
    ),
    "{name} has no effect where {setting} is {value}; leave it out": (
        "{setting} 为 {value} 时 {name} 不起作用；请去掉它"
    ),
    "{path} is damaged; restore it, or train the model again": "{path} 已损坏；请恢复该文件，或重新训练模型",
    "{path} holds a tokenizer of {size} tokens and a model of {vocabulary}; they do not belong together": (
        "{path} 中的分词器有 {size} 个词元，而模型有 {vocabulary} 个；两者不配套"
    ),
    "there is no prompt; give at least one text": "没有提示词；请至少给出一段文本",
    "a {family} reads from the left only, so it cannot fill in a place by what stands on its right; use lookback "
    "generate, or a BERT": "{family} 只从左侧阅读，不能根据右侧的文本填空；请使用 lookback generate，或改用 BERT",
    "there is no {mask} in the text; put one where a token is to be filled in": (
        "文本中没有 {mask}；请在要填空的地方写上它"
    ),
    "{got} is not a split; allowed: {allowed}": "{got} 不是可用的划分；可选：{allowed}",
    "training held nothing out, so there is no held-out part; evaluate --split all": (
        "训练时没有留出文本，因此没有留出部分；请用 --split all 评估"
    ),
    "{got} is not a stride; give a number of tokens, or the word window": (
        "{got} 不是可用的步长；请给出词元数，或写 window"
    ),
    "a BERT reads windows side by side; drop the stride, or set it to window": (
        "BERT 的窗口首尾相接；请去掉步长，或设为 window"
    ),
    "there is no device {got} here; use cpu, or auto": "这台机器上没有设备 {got}；请使用 cpu 或 auto",
    # inspection
    "no activation of this model is called {got}; lookback names lists them, such as {example}": (
        "此模型没有名为 {got} 的激活；可用 lookback names 列出全部名称，例如 {example}"
    ),
    "recording {names} activations would take {needed} MB, more than the budget of {budget} MB; name fewer, shorten "
    "the text, or raise the budget": (
        "记录 {names} 个激活需要 {needed} MB，超过预算 {budget} MB；请减少要记录的激活、缩短文本或提高预算"
    ),
}
