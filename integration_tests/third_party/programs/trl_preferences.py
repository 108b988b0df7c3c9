"""trl's trainers on a small model of a configuration.

    trl_preferences.py dpo|sft|reward
"""
import sys
import tempfile

import datasets
import tokenizers
import transformers as hf
import trl
from counted import CountedStep


class Counting(hf.TrainerCallback):
    step = CountedStep()

    def on_step_begin(self, *_, **__):
        self.step.begin()

    def on_step_end(self, *_, **__):
        self.step.end()


words = {f"w{i}": i for i in range(200)} | {"<pad>": 200, "<eos>": 201, "<unk>": 202}
raw = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<unk>"))
raw.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
tokenizer = hf.PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")
config = hf.LlamaConfig(hidden_size=128, num_hidden_layers=2, num_attention_heads=4, intermediate_size=256, vocab_size=256,
                        pad_token_id=200, eos_token_id=201)
kind = sys.argv[1]
common = {"per_device_train_batch_size": 4, "max_steps": 5, "report_to": [], "save_strategy": "no", "disable_tqdm": True,
          "logging_steps": 1, "bf16": True}
with tempfile.TemporaryDirectory() as folder:
    if kind == "sft":
        data = datasets.Dataset.from_list([{"text": "w1 w2 w3 w4 w5 w6"}] * 20)
        trainer = trl.SFTTrainer(hf.LlamaForCausalLM(config), args=trl.SFTConfig(folder, **common), train_dataset=data,
                                 processing_class=tokenizer, callbacks=[Counting()])
    else:
        data = datasets.Dataset.from_list([{"prompt": "w1 w2", "chosen": " w3 w4 w5", "rejected": " w6 w7"}] * 20)
        if kind == "dpo":
            trainer = trl.DPOTrainer(hf.LlamaForCausalLM(config), ref_model=hf.LlamaForCausalLM(config),
                                     args=trl.DPOConfig(folder, **common), train_dataset=data, processing_class=tokenizer, callbacks=[Counting()])
        else:
            config.num_labels = 1
            trainer = trl.RewardTrainer(hf.LlamaForSequenceClassification(config), args=trl.RewardConfig(folder, **common),
                                        train_dataset=data, processing_class=tokenizer, callbacks=[Counting()])
    print("trained", trainer.train().training_loss)
