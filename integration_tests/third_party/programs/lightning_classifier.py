"""A LightningModule with torchmetrics, trained and validated by Lightning's Trainer."""
import sys

import lightning
import torch
import torchmetrics
import torchvision
from counted import CountedStep


class Classifier(lightning.LightningModule):
    def __init__(self, name):
        super().__init__()
        self.model = torchvision.models.get_model(name, weights=None, num_classes=10)
        self.accuracy = torchmetrics.Accuracy(task="multiclass", num_classes=10)

    def training_step(self, batch, _):
        loss = torch.nn.functional.cross_entropy(self.model(batch[0]), batch[1])
        self.log("loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, _):
        self.accuracy(self.model(batch[0]), batch[1])
        self.log("accuracy", self.accuracy)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-3)
        return [optimizer], [torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)]


class Counting(lightning.Callback):
    step = CountedStep()

    def on_train_batch_start(self, *_):
        self.step.begin()

    def on_train_batch_end(self, *_):
        self.step.end()


data = torch.utils.data.TensorDataset(torch.randn(80, 3, 64, 64), torch.randint(10, (80,)))
loader = torch.utils.data.DataLoader(data, batch_size=16)
trainer = lightning.Trainer(max_epochs=1, accelerator="gpu", devices=1, precision="16-mixed", logger=False,
                            enable_checkpointing=False, enable_progress_bar=False, callbacks=[Counting()],
                            gradient_clip_val=1.0, detect_anomaly=False)
trainer.fit(Classifier(sys.argv[1]), loader, loader)
print("metrics", sorted(trainer.callback_metrics))
