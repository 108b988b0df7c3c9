"""The data loader puts batches into page-locked memory"""
# write: pin_memory=True, for the DataLoader


def why_not(loader, arguments):
    return "" if torch.cuda.is_available() else "there is no GPU here"


option_change("pin_memory", True, [torch.utils.data.DataLoader], why_not,
              framework=("TrainingArguments", "dataloader_pin_memory", True))
