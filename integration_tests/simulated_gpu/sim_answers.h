// File: sim_answers.h
//
// Asked, an object of a real library that the simulator keeps for its caller. The real library plans for 0.1 s, and
// gives the same answers to the same questions; the tests that fork a process for each of a thousand cases let those
// share what was answered (sim_share_answers). Where nothing is shared, the real library is asked each time.
#ifndef RFINJECT_INTEGRATION_TESTS_SIMULATED_GPU_SIM_ANSWERS_H_
#define RFINJECT_INTEGRATION_TESTS_SIMULATED_GPU_SIM_ANSWERS_H_

#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "integration_tests/simulated_gpu/simulator.h"

namespace sim {

// An answer depends on all that its object was asked before, the first of which made the object. The real object is
// made, by asking it all of that again, when a question comes whose answer is not known.
template <typename Object, typename Status>
class Asked {
 public:
  // Asks the real library: makes or uses the object, and sets what it answers besides its status.
  using Question = std::function<Status(Object**, std::string*)>;

  // `text` tells the question from all others that the object may be asked in the same state.
  Status Ask(const std::string& text, Question question, std::string* answer = nullptr) {
    asked_ += std::to_string(text.size()) + ' ' + text;
    Status status;
    std::string said;
    size_t size = 0;
    const auto* kept =
        real_ == nullptr ? static_cast<const char*>(sim_answer(asked_.data(), asked_.size(), &size)) : nullptr;
    if (kept != nullptr) {
      memcpy(&status, kept, sizeof status);
      said.assign(kept + sizeof status, size - sizeof status);
      questions_.push_back(std::move(question));
    } else {
      status = question(Real(), &said);
      std::string keep(sizeof status, '\0');
      memcpy(keep.data(), &status, sizeof status);
      keep += said;
      sim_keep_answer(asked_.data(), asked_.size(), keep.data(), keep.size());
    }
    if (answer != nullptr) *answer = std::move(said);
    return status;
  }

  // The real object, made if it is not there; null where the library refused to make it.
  Object** Real() {
    std::string said;
    for (const Question& question : std::exchange(questions_, {})) question(&real_, &said);
    return &real_;
  }
  // The real object, if it was made.
  Object* MadeReal() const { return real_; }

 private:
  std::string asked_;
  Object* real_ = nullptr;
  std::vector<Question> questions_;  // that the real object has not been asked yet
};

// A number as an answer, and back.
template <typename Number>
std::string Bytes(const Number& number) {
  return std::string(reinterpret_cast<const char*>(&number), sizeof number);
}
template <typename Number>
void FromBytes(const std::string& bytes, Number* number) {
  if (bytes.size() == sizeof *number) memcpy(number, bytes.data(), sizeof *number);
}

}  // namespace sim

#endif  // RFINJECT_INTEGRATION_TESTS_SIMULATED_GPU_SIM_ANSWERS_H_
