"""A LightningModule that Lightning's Trainer trains and validates; the module makes its optimizer, a data module its loaders."""
import argparse

import lightning as L
import torch
import torch.nn.functional as F
import torchvision
from torch.utils.data import DataLoader
from torchmetrics.classification import MulticlassAccuracy


class LitClassifier(L.LightningModule):
    def __init__(self, model="resnet18", lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.model = torchvision.models.get_model(model, weights=None, num_classes=10)
        self.val_acc = MulticlassAccuracy(num_classes=10)

    def forward(self, x):
        return self.model(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        loss = F.cross_entropy(logits, y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.val_acc(logits, y)
        self.log("val_loss", F.cross_entropy(logits, y), prog_bar=True)
        self.log("val_acc", self.val_acc)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
        return {"optimizer": optimizer, "lr_scheduler": scheduler}


class Images(L.LightningDataModule):
    def __init__(self, images=32, size=64, batch_size=8, num_workers=0):
        super().__init__()
        self.images, self.size, self.batch_size, self.num_workers = images, size, batch_size, num_workers

    def setup(self, stage=None):
        made = lambda n: torchvision.datasets.FakeData(n, (3, self.size, self.size), 10, torchvision.transforms.ToTensor())
        self.train, self.val = made(self.images), made(self.images // 2)

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.batch_size, shuffle=True, num_workers=self.num_workers)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=self.batch_size, num_workers=self.num_workers)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    L.seed_everything(42)
    trainer = L.Trainer(
        max_epochs=args.epochs,
        accelerator="auto",
        devices=1,
        log_every_n_steps=2,
        enable_progress_bar=False,
    )
    trainer.fit(LitClassifier(args.model), datamodule=Images())


if __name__ == "__main__":
    main()
