// File: thread_annotations.h
//
// Macros that say which lock guards what, for clang's -Wthread-safety
// (https://clang.llvm.org/docs/ThreadSafetyAnalysis.html). They are attributes for clang and nothing for every other
// compiler, and never change the code that is made. `scripts/lint` runs the analysis over collector/ and injector/; a
// field that is touched without its lock fails it.
//
//   Mutex lock_;
//   std::vector<int> items_ RFINJECT_GUARDED_BY(lock_);
//   void AddLocked(int item) RFINJECT_REQUIRES(lock_);
//
// What one thread alone touches needs no lock and no annotation; a comment names the thread.
#ifndef RFINJECT_COLLECTOR_THREAD_ANNOTATIONS_H_
#define RFINJECT_COLLECTOR_THREAD_ANNOTATIONS_H_

#ifdef __clang__
#define RFINJECT_THREAD_ATTRIBUTE(attribute) __attribute__((attribute))
#else
#define RFINJECT_THREAD_ATTRIBUTE(attribute)
#endif

// A class whose objects are locks, and one whose objects hold a lock for as long as they live.
#define RFINJECT_CAPABILITY(name) RFINJECT_THREAD_ATTRIBUTE(capability(name))
#define RFINJECT_SCOPED_CAPABILITY RFINJECT_THREAD_ATTRIBUTE(scoped_lockable)

// A field that may be touched, or a pointer whose target may be, only by a thread that holds the lock.
#define RFINJECT_GUARDED_BY(lock) RFINJECT_THREAD_ATTRIBUTE(guarded_by(lock))
#define RFINJECT_PT_GUARDED_BY(lock) RFINJECT_THREAD_ATTRIBUTE(pt_guarded_by(lock))

// A function whose caller must hold the locks, or must not.
#define RFINJECT_REQUIRES(...) RFINJECT_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define RFINJECT_EXCLUDES(...) RFINJECT_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))

// A function that takes locks, gives them back, or takes them where it returns `success`.
#define RFINJECT_ACQUIRE(...) RFINJECT_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define RFINJECT_RELEASE(...) RFINJECT_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define RFINJECT_TRY_ACQUIRE(success, ...) RFINJECT_THREAD_ATTRIBUTE(try_acquire_capability(success, ##__VA_ARGS__))

// From here on the lock counts as held; it is held in a way that the analysis cannot see.
#define RFINJECT_ASSERT_CAPABILITY(...) RFINJECT_THREAD_ATTRIBUTE(assert_capability(__VA_ARGS__))

// A function that the analysis cannot follow. A comment says why it is right all the same.
#define RFINJECT_NO_THREAD_SAFETY_ANALYSIS RFINJECT_THREAD_ATTRIBUTE(no_thread_safety_analysis)

#endif  // RFINJECT_COLLECTOR_THREAD_ANNOTATIONS_H_
