// File: glossary.h
//
// The words of reports, for a person who sees a report for the first time: `rfinject explain WORD`, and the end of
// the page.
#ifndef RFINJECT_CLI_WORDS_GLOSSARY_H_
#define RFINJECT_CLI_WORDS_GLOSSARY_H_

#include <span>
#include <string>
#include <string_view>

namespace rfinject::cli {

struct GlossaryEntry {
  std::string_view word;
  std::string_view also;  // other spellings that find it, with spaces between; may be empty
  std::string_view meaning;
};

// All entries, by word.
std::span<const GlossaryEntry> Glossary();

// Finds an entry by its word or another spelling, in upper or lower case; nullptr where there is none.
const GlossaryEntry* FindWord(std::string_view word);

// "attainable, bound, ...".
std::string GlossaryWords();

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_WORDS_GLOSSARY_H_
