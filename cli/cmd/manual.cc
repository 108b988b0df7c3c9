#include "cli/cmd/manual.h"

#include <sstream>
#include <string>

#include "cli/cmd/commands.h"
#include "cli/cmd/options.h"

namespace rfinject::cli {
namespace {

// `text` so that troff shows it as it is: a dash that can be copied, no control line, no escape.
std::string Roff(std::string_view text) {
  std::string result;
  bool begins_line = true;
  for (const char c : text) {
    if (begins_line && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\' || c == '-') result += '\\';
    result += c == '\\' ? 'e' : c;
    begins_line = c == '\n';
  }
  return result;
}

// Paragraphs, which are filled, and lines that begin with two spaces, which stay as they are.
std::string Paragraphs(std::string_view text) {
  std::string result;
  bool as_it_is = false;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  ") != as_it_is) {
      result += as_it_is ? ".fi\n" : ".nf\n";
      as_it_is = !as_it_is;
    }
    result += line.empty() ? ".PP\n" : Roff(line) + "\n";
  }
  return result + (as_it_is ? ".fi\n" : "");
}

std::string OptionEntry(const Option& option) {
  std::string text = ".TP\n";
  if (option.letter != 0) text += std::string("\\fB\\-") + option.letter + "\\fR, ";
  text += "\\fB\\-\\-" + Roff(option.name) + "\\fR";
  if (!option.value.empty()) {
    text += (TakesNoWord(option) ? "\\fI" : " \\fI") + Roff(option.value) + "\\fR";
  }
  return text + "\n" + Roff(option.help) + "\n";
}

std::string ManualSection(const Command& command) {
  const VerbHelp help = command.describe();
  const size_t forms = help.usage.find("\n\n");
  std::string text = ".SS " + std::string(command.name) + "\n.nf\n" + Roff(help.usage.substr(0, forms)) + "\n.fi\n";
  if (forms != std::string_view::npos) text += ".PP\n" + Paragraphs(help.usage.substr(forms + 2));
  for (const Option& option : help.options) text += OptionEntry(option);
  return text;
}

}  // namespace

std::string ManualPage(std::string_view version) {
  // No date: the same sources make the same page.
  std::string text = ".TH RFINJECT 1 \"\" \"rfinject " + std::string(version) + "\" \"User Commands\"\n";
  text +=
      ".SH NAME\nrfinject \\- rooflines of unmodified PyTorch training jobs, layer by layer\n"
      ".SH SYNOPSIS\n"
      ".nf\n"
      "\\fBrfinject\\fR [\\fIoptions\\fR] \\fIPROGRAM\\fR [\\fIARGS\\fR...]\n"
      "\\fBrfinject\\fR \\fIVERB\\fR [\\fIoptions\\fR] [\\fIFILE\\fR...]\n"
      ".fi\n"
      ".SH DESCRIPTION\n"
      "How far is each layer of a PyTorch training job from what the GPU could do, and why?\n"
      ".PP\n"
      "The program runs as if nothing were there. Each training process in it writes a trace into a folder of the\n"
      "run's own in \\fIrfinject\\-out/\\fR, from which the other verbs read.\n"
      ".SH VERBS\n";
  for (const Command& command : AllCommands()) {
    text += ".TP\n\\fB" + std::string(command.name) + "\\fR\n" + Roff(command.help) + "\n";
  }
  text += ".PP\nEvery verb takes \\fB\\-h\\fR, \\fB\\-\\-help\\fR.\n";
  for (const Command& command : AllCommands()) text += ManualSection(command);
  text +=
      ".SH ENVIRONMENT\n"
      ".TP\n\\fBRFINJECT_LIBRARY\\fR\n"
      "The injected library, librfinject.so, where it does not lie beside the command.\n"
      ".TP\n\\fBRFINJECT_OUTPUT\\fR\n"
      "Where traces go, as \\fB\\-\\-output\\fR of \\fBrun\\fR.\n"
      ".TP\n\\fBNO_COLOR\\fR\n"
      "Tables have no colours when it is set to anything.\n"
      ".PP\n"
      "\\fBrfinject env\\fR prints the variables that the options of \\fBrun\\fR become. An option of another verb "
      "is given\n"
      "a default by one with the verb's name, \\fBRFINJECT_REPORT_BY=op\\fR; a flag is 1 or 0.\n"
      ".SH EXIT STATUS\n"
      ".TP\n0\nall went well\n"
      ".TP\n1\nan input is damaged or cannot be read, or an output cannot be written\n"
      ".TP\n2\na mistake in the options\n"
      ".TP\n3\nan alarm was raised, and \\fBreport \\-\\-strict\\fR was asked to say so\n"
      ".TP\n4\na condition of \\fBdiff \\-\\-fail\\-if\\fR holds\n"
      ".TP\n126, 127\n\\fBrun\\fR: the program cannot be run, there is no such program. Else its own.\n"
      ".SH FILES\n"
      ".TP\n\\fIrfinject\\-out/\\fR\na folder for each run that was given no \\fB\\-\\-output\\fR\n"
      ".TP\n\\fIrfinject\\-out/latest\\fR\nnames the last of them\n";
  return text;
}

}  // namespace rfinject::cli
