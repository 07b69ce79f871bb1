"""What the commands say, in Chinese."""

from __future__ import annotations

COMMANDS = {
    # cli/__init__.py, app.py, language.py, output.py
    "this is a fault of lookback's, not yours: {kind}: {error}; LOOKBACK_TRACEBACK=1 shows where": (
        "这是 lookback 的错误，与您的操作无关：{kind}: {error}；设置 LOOKBACK_TRACEBACK=1 可显示出错位置"
    ),
    "the system refused: {what}; what was there before is left as it was": "系统拒绝了操作：{what}；原有内容保持不变",
    "Train, run and look into language models: RNN, LSTM, GRU, GPT and BERT, on your own text, offline.": (
        "离线训练、运行并剖析语言模型：在自己的文本上使用 RNN、LSTM、GRU、GPT 和 BERT。"
    ),
    "Language of the messages: en or zh (default: the locale's).": "提示信息的语言：en 或 zh（默认取自系统区域设置）。",
    "Print the version and stop.": "显示版本号后退出。",
    "Example:": "示例：",
    "{got} is not a language; --lang takes en or zh": "{got} 不是可用的语言；--lang 可取 en 或 zh",
    "{got} is not a number; write it like 800000, 800k or 1.5M": "{got} 不是数；请写成 800000、800k 或 1.5M 这样的形式",
    "there is no option {name}{near}; see {command} --help": "没有选项 {name}{near}；用法见 {command} --help",
    "{name} is missing; see {command} --help": "缺少 {name}；用法见 {command} --help",
    "there is no command {name}; see {command} --help": "没有命令 {name}；用法见 {command} --help",
    "{name} cannot take this value ({reason}); see {command} --help": (
        "{name} 的取值不可用（{reason}）；用法见 {command} --help"
    ),
    "{reason}; see {command} --help": "{reason}；用法见 {command} --help",
    "there is not enough memory for this; choose a smaller model, batch or length": (
        "内存不足；请减小模型、批大小或窗口长度"
    ),
    # corpora
    "List the bundled corpora, and the prepared token files kept for faster starts.": (
        "列出自带语料，以及为加快启动而保留的词元文件。"
    ),
    "{documents} documents, {characters} characters": "{documents} 篇，{characters} 字符",
    "prepared token files: {size} MB in {folder}": "已保留的词元文件：{size} MB，位于 {folder}",
    "Delete the prepared token files (made again when needed).": "删除已保留的词元文件（需要时会重新生成）。",
    # demo
    "Train an RNN, an LSTM, a GPT and a BERT of equal size, compare them, and prove what is said of them.": (
        "训练大小相同的 RNN、LSTM、GPT 和 BERT 各一个，加以比较，并当场验证关于它们的说法。"
    ),
    "* BERT sees both sides, and only its masked tokens count: not to be compared with the others.": (
        "* BERT 能看到两侧的文本，且只计被掩码的词元，不能与其他模型直接比较。"
    ),
    "{path} holds something else than a demo; choose another --out": "{path} 中有演示以外的内容；请另选 --out",
    "model": "模型",
    "parameters": "参数量",
    "tokens seen": "已训练词元",
    "bits/byte": "比特/字节",
    "learns/s": "训练/秒",
    "writes/s": "生成/秒",
    "state": "状态",
    "learns/s, writes/s: tokens a second in training and in generation; state: bytes after {tokens} tokens": (
        "训练/秒、生成/秒：训练和生成时每秒处理的词元数；状态：{tokens} 个词元之后的字节数"
    ),
    "Training time of all four together.": "四个模型合计的训练时间（分钟）。",
    "Size of each model.": "每个模型的参数量。",
    "Where the four models go; an earlier demo there is replaced.": "存放四个模型的文件夹；其中先前的演示会被替换。",
    "{seconds} s. The models are in {folder}; go on with:": "用时 {seconds} 秒。模型已存入 {folder}；接下来可以运行：",
    "training: {family}": "正在训练：{family}",
    "Each goes on from: {line}": "各模型续写：{line}",
    "BERT fills in: {line}": "BERT 填空：{line}",
    "Checked just now:": "刚刚验证的结果：",
    "{family}: cached and uncached logits differ by at most {difference}; the state cut {without} positions "
    "computed to {work} ({speedup}× as fast); changing the last token moves earlier logits by {leak}": (
        "{family}：使用与不使用缓存的 logits 最多相差 {difference}；状态把需要计算的位置从 {without} 个减到 {work} "
        "个（速度为 {speedup} 倍）；改动最后一个词元，此前的 logits 变化为 {leak}"
    ),
    # evaluate
    "A file, a folder, or a bundled corpus.": "文件、文件夹或自带语料的名称。",
    "Score a text: nats a token, perplexity, bits a byte; for BERT masked accuracy and pseudo-perplexity.": (
        "为文本评分：每词元奈特数、困惑度、每字节比特数；BERT 则为掩码准确率和伪困惑度。"
    ),
    "nats a token": "每词元奈特数",
    "bits a byte": "每字节比特数",
    "tokens": "词元数",
    "bytes": "字节数",
    "masked accuracy": "掩码准确率",
    "all, held-out or train, as training split it.": (
        "all（全部）、held-out（留出部分）或 train（训练部分），按训练时的划分。"
    ),
    "Tokens read at once.": "一次读入的词元数。",
    "Tokens between windows, or: window (side by side).": "相邻窗口起点相隔的词元数；window 表示窗口首尾相接。",
    "Windows at a time; changes speed only.": "同时计算的窗口数；只影响速度。",
    "Score the first so many tokens only.": "只给这么多个词元评分。",
    "scoring": "正在评分",
    "pseudo-perplexity (each token masked alone)": "伪困惑度（逐个词元单独掩码）",
    "perplexity": "困惑度",
    # fill
    "Fill in each [MASK] of a text, by what stands on both sides of it.": "根据两侧的文本填出每个 [MASK]。",
    "A text with one or more [MASK].": "含有一个或多个 [MASK] 的文本。",
    "How many fills to show for each.": "每处显示多少个候选。",
    "Fill the surest first, then look again, instead of all together.": (
        "先填最有把握的一处，再重新预测其余各处，而不是一次全部填出。"
    ),
    # generate
    "A model folder.": "模型文件夹。",
    "Go on from a prompt (or several), streaming to the terminal.": "从一个或多个提示词续写，结果即时显示在终端。",
    "{reason} · {speed} tokens/s · state of {bytes} bytes": "{reason} · {speed} 词元/秒 · 状态 {bytes} 字节",
    "ended at a stop text": "遇到停止文本而结束",
    "ended where the text ends": "写到文末而结束",
    "ended at the limit of length": "达到长度上限而结束",
    "What to go on from.": "要续写的提示词。",
    "The most tokens to write.": "最多生成的词元数。",
    "0 always takes the likeliest token.": "采样温度；0 表示总取概率最高的词元。",
    "Sample from the k likeliest tokens.": "只从概率最高的 k 个词元中采样。",
    "Sample from the likeliest tokens that reach p together.": "只从累计概率达到 p 的最可能词元中采样。",
    "Leave out tokens below p times the likeliest.": "舍去概率低于最高概率 p 倍的词元。",
    "Above 1 avoids what was said.": "重复惩罚；大于 1 时避免重复已有内容。",
    "End before this text (may be given several times).": "在此文本之前停止（可多次给出）。",
    "Seed of the sampling.": "采样的随机种子。",
    "How many texts to write for each prompt.": "每个提示词生成几段文本。",
    "Keep the state, or recompute everything.": "保留状态，或每步全部重新计算。",
    "At the context's end drop the oldest and recompute.": "到达上下文长度后，舍去最早的词元并重新计算。",
    "Make a BERT write all the same.": "仍然让 BERT 续写。",
    # chat, export, inspect-file
    "Hold a conversation with a model that was trained to (its chat template is used).": (
        "与受过对话训练的模型对话（使用它的对话模板）。"
    ),
    "A model folder, a GGUF file, or hf:owner/name.": "模型文件夹、GGUF 文件或 hf:owner/name。",
    "What the model is told first.": "最先告诉模型的话（系统提示词）。",
    "Say this, print the answer and stop.": "只说这一句，打印回答后退出。",
    "Type a message and press Enter; an empty line or Ctrl-D ends.": "输入消息后按回车；空行或 Ctrl-D 结束对话。",
    "Write a model as a folder that Hugging Face and vLLM open; the result is opened again and compared.": (
        "把模型写成 Hugging Face 和 vLLM 能打开的文件夹；写好后重新打开并加以比较。"
    ),
    "The folder to write; it must not hold anything yet.": "要写入的文件夹；其中不能已有内容。",
    "huggingface, or lookback (every family).": "huggingface，或 lookback（适用于所有模型类型）。",
    "{out}: {architecture}; opened again, its logits differ by at most {difference}": (
        "{out}：{architecture}；重新打开后，logits 最多相差 {difference}"
    ),
    "Print what a model file or folder holds, without loading the weights.": "显示模型文件或文件夹的内容，不加载权重。",
    "A model folder, or a GGUF file.": "模型文件夹或 GGUF 文件。",
    "{parameters} parameters in {tensors} tensors": "{tensors} 个张量，共 {parameters} 个参数",
    "numbers: {kinds}": "数值类型：{kinds}",
    "memory: {sizes}": "内存：{sizes}",
    "KV cache per 1,000 tokens: {sizes}": "每 1,000 个词元的 KV 缓存：{sizes}",
    "state, at any length: {sizes}": "状态（与长度无关）：{sizes}",
    # models
    "List the trained models below a folder with their held-out bits a byte, and the presets.": (
        "列出文件夹下训练好的模型及其在留出部分上的每字节比特数，并列出各种预设。"
    ),
    "Where to look.": "要查找的文件夹。",
    "not scored yet": "尚未评分",
    "held-out {bits} bits a byte": "留出部分每字节 {bits} 比特",
    "no models below {folder}; make one with lookback train": "{folder} 下没有模型；可用 lookback train 训练一个",
    "families": "模型类型",
    "presets": "预设",
    "styles": "结构风格",
    # progress
    "learning the vocabulary": "正在学习词表",
    "turning the text into tokens": "正在把文本转换为词元",
    "loss {loss}{held_out} · {speed} tokens/s · {left} left": "损失 {loss}{held_out} · {speed} 词元/秒 · 剩余 {left}",
    "step {step}: loss {loss}": "第 {step} 步：损失 {loss}",
    "step {step}: loss {loss}, held-out {nats} nats a token, {bits} bits a byte": (
        "第 {step} 步：损失 {loss}，留出部分每词元 {nats} 奈特，每字节 {bits} 比特"
    ),
    "held-out {bits} bits/byte": "留出部分 {bits} 比特/字节",
    # train
    "End with one JSON object on standard output.": "最后在标准输出上打印一个 JSON 对象。",
    "Seed of everything random.": "一切随机过程的种子。",
    "The text's encoding.": "文本的编码。",
    "Let a window read across documents.": "允许窗口跨越文档边界。",
    "The field of .jsonl lines.": ".jsonl 各行中存放文本的字段。",
    "cpu, cuda, mps or auto.": "cpu、cuda、mps 或 auto。",
    "Train a language model on a text: a file, a folder of .txt, .md and .jsonl, or a bundled corpus by name.": (
        "在文本上训练语言模型：可以是文件，含 .txt、.md、.jsonl 的文件夹，或自带语料的名称。"
    ),
    "stopped at step {step} and saved; go on with: lookback train {source} --resume --out {out}": (
        "已在第 {step} 步停下并保存；继续训练请运行：lookback train {source} --resume --out {out}"
    ),
    "{out}: {family} of {parameters} parameters, {tokens} tokens in {time}{held_out}": (
        "{out}：{family}，{parameters} 个参数，{tokens} 个词元，用时 {time}{held_out}"
    ),
    "A file, a folder, or a bundled corpus (lookback corpora).": (
        "文件、文件夹或自带语料的名称（见 lookback corpora）。"
    ),
    "The folder the model goes to.": "存放模型的文件夹。",
    "gpt, bert, rnn, lstm or gru.": "gpt、bert、rnn、lstm 或 gru。",
    "A size: tiny, small, nanogpt-char-cpu, nanogpt-char, gpt2.": (
        "规模：tiny、small、nanogpt-char-cpu、nanogpt-char 或 gpt2。"
    ),
    "A Transformer's body: gpt2, llama, qwen2, qwen3, bert.": (
        "Transformer 的结构风格：gpt2、llama、qwen2、qwen3 或 bert。"
    ),
    "Size the model to a budget, such as 800k or 2M.": "按参数量预算确定模型大小，例如 800k 或 2M。",
    "Number of layers.": "层数。",
    "Attention heads a layer.": "每层的注意力头数。",
    "Key/value heads: fewer than heads is grouped-query.": "键值头数；少于注意力头数即为分组查询注意力。",
    "Width of the hidden vectors.": "隐藏向量的宽度。",
    "Width of a head.": "每个注意力头的宽度。",
    "Width inside the MLP.": "MLP 的中间宽度。",
    "The most tokens the model can read at once.": "上下文长度，即模型一次最多能读的词元数。",
    "learned, sinusoidal, rotary or none.": "位置编码：learned、sinusoidal、rotary 或 none。",
    "How far a position may read back.": "滑动窗口：一个位置最多能回看多远。",
    "Use one matrix for queries and keys.": "查询与键共用一个矩阵。",
    "Divide attention scores by √H.": "注意力分数是否除以 √H。",
    "Use the embedding as the output matrix.": "输出矩阵是否与词嵌入共享。",
    "An RNN's cell: rnn_tanh or rnn_relu.": "RNN 的单元：rnn_tanh 或 rnn_relu。",
    "Where an LSTM's forget gates start.": "LSTM 遗忘门偏置的初始值。",
    "Dropout, from 0 to 1.": "dropout 比率，从 0 到 1。",
    "character, word, bpe, wordpiece, or a model folder.": (
        "分词方式：character、word、bpe、wordpiece，或某个模型文件夹。"
    ),
    "Size of a learnt vocabulary.": "要学习的词表大小。",
    "Send unknown characters to an unknown token.": "把词表外的字符转换为未知词元。",
    "How much text a vocabulary is learnt from.": "用多少文本（字节）学习词表。",
    "What is held out: position, document or none.": (
        "留出方式：position（末尾部分）、document（整篇文档）或 none（不留出）。"
    ),
    "How much is held out.": "留出部分所占的比例。",
    "Stop after so many steps.": "训练这么多步后停止。",
    "Stop after so many tokens.": "训练这么多词元后停止。",
    "Stop after so many minutes.": "训练这么多分钟后停止。",
    "Windows a step.": "批大小：每步的窗口数。",
    "Tokens a window.": "每个窗口的词元数。",
    "Windows at a time; gradients are added up.": "同时计算的窗口数；梯度会累加。",
    "The highest learning rate.": "学习率的最高值。",
    "Part of the run in which the rate rises.": "学习率预热在整个训练中所占的比例。",
    "How the rate falls: cosine, linear or none.": "学习率的衰减方式：cosine、linear 或 none。",
    "AdamW's weight decay.": "AdamW 的权重衰减。",
    "The longest gradient.": "梯度裁剪：梯度范数的上限。",
    "Share of tokens a BERT must guess.": "BERT 需要预测的词元所占的比例。",
    "Steps between evaluations.": "每隔多少步评估一次。",
    "Held-out tokens an evaluation reads (the last one ten times as many).": (
        "每次评估读取的留出词元数（最后一次为其十倍）。"
    ),
    "Steps between further checkpoints.": "每隔多少步另存一次检查点。",
    "Go on from the last checkpoint, exactly.": "从最后一个检查点精确地继续训练。",
    "; held-out {bits} bits a byte": "；留出部分每字节 {bits} 比特",
    "List the names of a model's activations with their shapes and what they take in memory.": (
        "列出模型各个激活的名称、形状和所占内存。"
    ),
    "Length of the text that the memory is stated for.": "按多长的文本（词元数）计算内存。",
}
