from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookback.errors import InputError
from lookback.tokenizers import ChatTemplate, Piece, Tokenizer, encode_chat

CHATML = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are helpful<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
LLAMA2 = (
    "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}"
    "{% set system_message = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}"
    "{% set system_message = false %}{% endif %}{% for message in loop_messages %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{% if loop.index0 == 0 and system_message != false %}"
    "{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}"
    "{% else %}{% set content = message['content'] %}{% endif %}{% if message['role'] == 'user' %}"
    "{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{% elif message['role'] == 'assistant' %}"
    "{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}"
)
LLAMA3 = (
    "{% set loop_messages = messages %}{% for message in loop_messages %}"
    "{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim"
    " + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
)
MISTRAL = (
    "{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate') }}{% endif %}{% if message['role'] == 'user' %}"
    "{{ '[INST] ' + message['content'] + ' [/INST]' }}{% elif message['role'] == 'assistant' %}"
    "{{ message['content'] + eos_token}}{% else %}{{ raise_exception('Only user and assistant roles are supported!') }}"
    "{% endif %}{% endfor %}"
)
ZEPHYR = """{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>
' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>
' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{% generation %}
{{ '<|assistant|>
'  + message['content'] + eos_token }}
{% endgeneration %}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}"""
QWEN3 = """{%- if tools %}
    {{- '<|im_start|>system\\n# Tools\\n<tools>' }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools><|im_end|>\\n" }}
{%- endif %}
{%- set ns = namespace(last=messages|length - 1) %}
{%- for message in messages %}
    {%- set content = message.content if message.content is string else '' %}
    {%- if message.role == "assistant" %}
        {%- set reasoning = '' %}
        {%- if '</think>' in content %}
            {%- set reasoning = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.last %}
            {{- '<|im_start|>assistant\\n<think>\\n' + reasoning + '\\n</think>\\n\\n' + content + '<|im_end|>\\n' }}
            {%- continue %}
        {%- endif %}
    {%- endif %}
    {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}"""
TEMPLATES = {
    "smollm": [CHATML],
    "qwen2": [CHATML, QWEN3],
    "llama2": [LLAMA2, MISTRAL, ZEPHYR],
    "metaspace": [LLAMA2, MISTRAL, ZEPHYR],
    "llama3": [LLAMA3],
    "gpt2": [ZEPHYR],
}
CASES = [(kind, template) for kind, templates in TEMPLATES.items() for template in templates]
NAMES = {CHATML: "chatml", LLAMA2: "llama2", LLAMA3: "llama3", MISTRAL: "mistral", ZEPHYR: "zephyr", QWEN3: "qwen3"}

contents = st.lists(
    st.sampled_from(
        [" We", "said", "\n", " ", "床前", "é", "😀", "1234", ">", "<", "[", "<think>\nhm\n</think>\n\n", "{{ x }}"]
    ),
    max_size=6,
).map("".join)


@pytest.fixture(scope="module")
def opened(foreign, tmp_path_factory):
    """A tokenizer with a chat template, ours and transformers'."""
    from transformers import AutoTokenizer

    made = {}

    def get(kind: str, template: object):
        if (kind, str(template)) not in made:
            folder = tmp_path_factory.mktemp(kind)
            foreign(kind).ours.save(folder)
            config = json.loads((folder / "tokenizer_config.json").read_text())
            (folder / "tokenizer_config.json").write_text(json.dumps(config | {"chat_template": template}))
            made[kind, str(template)] = Tokenizer.load(folder), AutoTokenizer.from_pretrained(folder)
        return made[kind, str(template)]

    return get


@pytest.mark.parametrize(("kind", "template"), CASES, ids=lambda value: NAMES.get(value, value))
@given(data=st.data())
def test_ids_are_those_of_transformers(opened, kind, template, data):
    ours, theirs = opened(kind, template)
    roles = ["user", "assistant"] * 2
    messages = [{"role": role, "content": data.draw(contents)} for role in roles[: data.draw(st.integers(1, 4))]]
    if template != MISTRAL and data.draw(st.booleans()):
        messages.insert(0, {"role": "system", "content": data.draw(contents)})
    prompt = data.draw(st.booleans())
    ids = theirs.apply_chat_template(messages, add_generation_prompt=prompt, return_dict=False)
    assert encode_chat(ours, messages, add_generation_prompt=prompt) == ids


def test_tools_and_further_names_reach_the_template(opened):
    ours, theirs = opened("qwen2", [{"name": "default", "template": CHATML}, {"name": "tool_use", "template": QWEN3}])
    tool = {"type": "function", "function": {"name": "add", "description": 'Adds "<" and é', "parameters": {}}}
    messages = [{"role": "user", "content": "1 + 2?"}]
    for names in ({"tools": [tool]}, {"tools": [tool], "enable_thinking": False}, {}):
        assert encode_chat(ours, messages, **names) == theirs.apply_chat_template(
            messages, add_generation_prompt=True, return_dict=False, **names
        )


def test_a_template_in_a_file_of_its_own(foreign, tmp_path):
    foreign("llama3").ours.save(tmp_path)
    (tmp_path / "chat_template.jinja").write_text(LLAMA3, "utf-8")
    assert Tokenizer.load(tmp_path).chat_templates == {"default": LLAMA3}


@pytest.mark.parametrize(("kind", "template"), CASES, ids=lambda value: NAMES.get(value, value))
@given(data=st.data())
def test_what_a_person_writes_never_becomes_a_special_token(opened, kind, template, data):
    """The same special tokens come out, whatever the messages hold; and no character is lost."""
    ours, theirs = opened(kind, template)
    names = st.sampled_from(sorted(ours.special_names))
    partial = names.flatmap(lambda name: st.sampled_from([name[:1], name[:-1], name[1:], name[-1:], name[2:]]))
    hostile = st.lists(names | partial | st.sampled_from(["x", " ", "\n", "}}"]), max_size=6).map("".join)
    roles = ["user", "assistant", "user"][: data.draw(st.integers(1, 3))]
    messages = [{"role": role, "content": data.draw(hostile)} for role in roles]
    ids = encode_chat(ours, messages)
    harmless = encode_chat(ours, [{"role": role, "content": "x"} for role in roles])
    assert [t for t in ids if t in ours.specials] == [t for t in harmless if t in ours.specials]
    if ours.reversible:
        raw = b"".join(ours.token_bytes(token) or ours.token_text(token).encode() for token in ids)
        assert raw.decode() == theirs.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)


def test_pieces_keep_special_names_apart():
    template = ChatTemplate(CHATML, ["<|im_start|>", "<|im_end|>"])
    messages = [{"role": "system", "content": "a<|im_end|>b"}, {"role": "user", "content": "c<|im_"}]
    assert template.render(messages, add_generation_prompt=False) == [
        Piece("<|im_start|>system\na", True),
        Piece("<|im_end|>", False),
        Piece("b<|im_end|>\n<|im_start|>user\nc", True),
        Piece("<|im_", False),
        Piece("<|im_end|>\n", True),
    ]


@pytest.mark.parametrize("change", ["upper()", "replace('i', 'j')", "split('|')[0]"])
def test_a_template_that_changes_such_names_is_refused(change):
    template = ChatTemplate("{{ messages[0].content." + change + " }}", ["<|im_end|>"])
    assert template.render([{"role": "user", "content": "hi|"}])
    with pytest.raises(InputError, match=r"changes or looks into the messages, so <\|im_end\|> in them can't be kept"):
        template.render([{"role": "user", "content": "hi <|im_end|>"}])


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
        ("{{ messages[0].nothing.more }}", "has no attribute 'nothing'"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{% for i in range(10**9) %}{% endfor %}", "more than 100,000 turns"),
        ("{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}", "more than 100,000 turns"),
        ("{% for i in range(1000) %}{{ 'x' * 100000 }}{% endfor %}", "writes more than"),
        ("{{ messages.__class__.__mro__ }}", "unsafe"),
        ("{{ messages.append(1) }}", "unsafe|not safely callable"),
        ("{% set ns = namespace() %}{% set ns.__class__ = 1 %}", "__class__ can't be set"),
    ],
)
def test_what_a_template_may_not_do_is_one_sentence(source, reason):
    with pytest.raises(InputError, match=rf"the chat template does not take these messages: .*({reason})") as caught:
        ChatTemplate(source).render([{"role": "user", "content": "x"}])
    assert "\n" not in str(caught.value)


def test_other_mistakes(foreign):
    with pytest.raises(InputError, match="is no valid Jinja"):
        ChatTemplate("{% for %}")
    for message in ({"content": "x"}, {"role": "<s>", "content": "x"}, {"role": 1}, "x"):
        with pytest.raises(InputError, match="give each message a role of one word, such as user"):
            ChatTemplate(CHATML).render([message])
    with pytest.raises(InputError, match="has no chat template"):
        encode_chat(foreign("gpt2").ours, [{"role": "user", "content": "x"}])


def test_a_template_knows_the_time():
    template = ChatTemplate("{{ strftime_now('%Y') }}")
    assert template.render([{"role": "user"}])[0].text.isdigit()
