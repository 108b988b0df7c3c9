"""A causal language model that Hugging Face's Trainer trains and evaluates, as its example scripts do."""
import argparse

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed


class Tokens(Dataset):
    """Made-up texts of one length"""

    def __init__(self, rows, length, words):
        self.rows = torch.randint(words, (rows, length), generator=torch.Generator().manual_seed(0))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {"input_ids": self.rows[i], "labels": self.rows[i]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output_dir", default="trained")
    parser.add_argument("--rows", type=int, default=32)
    args = parser.parse_args()
    set_seed(0)

    config = GPT2Config(vocab_size=2048, n_positions=128, n_embd=512, n_layer=2, n_head=8)
    model = GPT2LMHeadModel(config)
    training_args = TrainingArguments(
        output_dir=args.output_dir,
        num_train_epochs=2,
        per_device_train_batch_size=8,
        per_device_eval_batch_size=8,
        eval_strategy="epoch",
        save_strategy="epoch",
        logging_steps=2,
        learning_rate=5e-5,
        report_to="none",
        disable_tqdm=True,
    )
    trainer = Trainer(
        model=model,
        args=training_args,
        train_dataset=Tokens(args.rows, 128, 2048),
        eval_dataset=Tokens(args.rows // 2, 128, 2048),
    )
    trainer.train()
    trainer.save_model()
    print(trainer.evaluate())


if __name__ == "__main__":
    main()
