"""Hugging Face's Trainer on a model that a configuration makes.

    hf_trainer.py KIND [lora] [checkpointing] [accumulate] [padded] [fp32]
"""
import sys
import tempfile

import torch
import transformers as hf
from counted import CountedStep

kind, more = sys.argv[1], sys.argv[2:]
WORDS, LENGTH, BATCH, STEPS = 30522, 128, 8, 4
generator = torch.Generator().manual_seed(0)


def words(n=LENGTH):
    return torch.randint(5, 30000, (n,), generator=generator)


def text(labels):
    mask = torch.ones(LENGTH, dtype=torch.long)
    if "padded" in more:
        mask[LENGTH // 2:] = 0
    return lambda: {"input_ids": words(), "attention_mask": mask, "labels": labels()}


small = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 1024}
one = lambda: torch.tensor(1)  # noqa: E731
KINDS = {
    "bert": lambda: (hf.BertForMaskedLM(hf.BertConfig(**small)), text(words)),
    "roberta": lambda: (hf.RobertaForSequenceClassification(hf.RobertaConfig(**small, vocab_size=WORDS, num_labels=3)), text(one)),
    "distilbert": lambda: (hf.DistilBertForSequenceClassification(hf.DistilBertConfig(dim=256, n_layers=3, n_heads=4, hidden_dim=1024)), text(one)),
    "gpt2": lambda: (hf.GPT2LMHeadModel(hf.GPT2Config(n_embd=256, n_layer=4, n_head=4, vocab_size=WORDS)), text(words)),
    "llama": lambda: (hf.LlamaForCausalLM(hf.LlamaConfig(**small, num_key_value_heads=2, vocab_size=WORDS)), text(words)),
    "qwen2": lambda: (hf.Qwen2ForCausalLM(hf.Qwen2Config(**small, num_key_value_heads=2, vocab_size=WORDS)), text(words)),
    "t5": lambda: (hf.T5ForConditionalGeneration(hf.T5Config(decoder_start_token_id=0, d_model=256, d_kv=64, d_ff=1024, num_layers=3, num_heads=4)),
                   text(words)),
    "vit": lambda: (hf.ViTForImageClassification(hf.ViTConfig(**small, image_size=224, patch_size=16, num_labels=10)),
                    lambda: {"pixel_values": torch.randn(3, 224, 224), "labels": one()}),
    "wav2vec2": lambda: (hf.Wav2Vec2ForCTC(hf.Wav2Vec2Config(**small, vocab_size=32, conv_dim=(64,) * 7, mask_time_prob=0.05)),
                         lambda: {"input_values": torch.randn(16000), "labels": torch.randint(1, 31, (10,))}),
    "whisper": lambda: (hf.WhisperForConditionalGeneration(hf.WhisperConfig(
        d_model=256, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=1024, decoder_ffn_dim=1024)),
        lambda: {"input_features": torch.randn(80, 3000), "labels": words(32)}),
    "mixtral": lambda: (hf.MixtralForCausalLM(hf.MixtralConfig(**small, num_key_value_heads=2, num_local_experts=4,
                                                               vocab_size=WORDS)), text(words)),
    "segformer": lambda: (hf.SegformerForSemanticSegmentation(hf.SegformerConfig(num_labels=20)),
                          lambda: {"pixel_values": torch.randn(3, 256, 256), "labels": torch.randint(0, 20, (256, 256))}),
}


class Rows(torch.utils.data.Dataset):
    def __init__(self, make, rows):
        self._rows = [make() for _ in range(rows)]

    def __len__(self):
        return len(self._rows)

    def __getitem__(self, i):
        return self._rows[i]


class Counting(hf.TrainerCallback):
    step = CountedStep()

    def on_step_begin(self, *_, **__):
        self.step.begin()

    def on_step_end(self, *_, **__):
        self.step.end()


model, make = KINDS[kind]()
if "lora" in more:
    import peft
    model = peft.get_peft_model(model, peft.LoraConfig(r=8, target_modules="all-linear", task_type="CAUSAL_LM"))
    model.print_trainable_parameters()
accumulate = 2 if "accumulate" in more else 1
with tempfile.TemporaryDirectory() as folder:
    trainer = hf.Trainer(
        model=model, train_dataset=Rows(make, BATCH * STEPS * accumulate), callbacks=[Counting()],
        args=hf.TrainingArguments(
            folder, per_device_train_batch_size=BATCH, max_steps=STEPS, bf16="fp32" not in more, report_to=[],
            logging_steps=2, save_strategy="no", gradient_accumulation_steps=accumulate, disable_tqdm=True,
            gradient_checkpointing="checkpointing" in more))
    print("trained", trainer.train().training_loss)
