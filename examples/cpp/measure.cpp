// Time of one control cycle, and what it allocates: a line for each controller.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <vector>

#include "dyn_controller.hpp"

static std::size_t allocations = 0;  // this program has one thread

#ifdef __GLIBC__
extern "C" {
void *__libc_malloc(std::size_t);
void *__libc_calloc(std::size_t, std::size_t);
void *__libc_realloc(void *, std::size_t);
void *malloc(std::size_t size) { return ++allocations, __libc_malloc(size); }
void *calloc(std::size_t n, std::size_t size) {
    return ++allocations, __libc_calloc(n, size);
}
void *realloc(void *old, std::size_t size) {
    return ++allocations, __libc_realloc(old, size);
}
}
#endif

void *operator new(std::size_t size) {
    ++allocations;
    if (void *memory = std::malloc(size)) return memory;
    throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }

using Clock = std::chrono::steady_clock;

static double percentile(const std::vector<double> &sorted, double part) {
    return sorted[std::size_t(part * double(sorted.size() - 1))];
}

static void measure(const char *folder, const char *name, int cycles) {
    dyn::Controller controller(folder, name);
    controller.gains(400.0, 40.0);
    const std::size_t n = controller.joints();
    const double middle[] = {0.0, -0.6, 0.0, -2.2, 0.0, 1.6, 0.8};  // within its limits
    std::vector<double> q(n), qd(n), q_ref(n), qd_ref(n), qdd_ref(n);
    std::vector<double> times(std::size_t(cycles), 0.0), clock(times);
    const std::size_t before = allocations;
    int driven = 0;
    for (int k = 0; k < cycles; ++k) {
        const double t = 1e-4 * k;
        for (std::size_t j = 0; j < n; ++j) {
            q[j] = middle[j % 7] + 0.5 * std::sin(t + double(j));
            qd[j] = 0.5 * std::cos(t + double(j));
            q_ref[j] = q[j] + 1e-3;
            qd_ref[j] = qd[j];
            qdd_ref[j] = -0.5 * std::sin(t + double(j));
        }
        const auto start = Clock::now();
        controller.update(t, q.data(), qd.data(),
                          {q_ref.data(), qd_ref.data(), qdd_ref.data()});
        const auto end = Clock::now();
        times[std::size_t(k)] = std::chrono::duration<double, std::micro>(end - start).count();
        clock[std::size_t(k)] =
            std::chrono::duration<double, std::micro>(Clock::now() - end).count();
        driven += controller.drives();
    }
    const std::size_t made = allocations - before;
    std::sort(times.begin(), times.end());
    std::sort(clock.begin(), clock.end());
    std::printf("%s: p50 %.3f us, p90 %.3f us, p99 %.3f us, p99.9 %.3f us, largest"
                " %.1f us (reading the clock: %.3f us), %d of %d cycles drive, %zu"
                " allocations\n", name, percentile(times, 0.5), percentile(times, 0.9),
                percentile(times, 0.99), percentile(times, 0.999), times.back(),
                percentile(clock, 0.5), driven, cycles, made);
    std::printf("  ");
    for (double low = 0.125; low < 16.0; low *= 2) {
        const auto from = std::lower_bound(times.begin(), times.end(), low);
        const auto to = std::lower_bound(times.begin(), times.end(), 2 * low);
        std::printf(" %g-%g us: %.3f%%", low, 2 * low, 100.0 * double(to - from) / cycles);
    }
    std::printf("\n");
}

int main(int argc, char **argv) try {
    const char *folder = argc > 1 ? argv[1] : "kernels";
    const int cycles = argc > 2 ? std::atoi(argv[2]) : 200000;
    const std::size_t before = allocations;
    { std::vector<double> seen(3); }
    if (allocations == before) throw dyn::Error("allocations are not counted");
    measure(folder, "computed_torque_cycle_arm7", cycles);
    measure(folder, "joint_impedance_cycle_arm7", cycles);
    measure(folder, "gravity_compensation_cycle_arm7", cycles);
    return 0;
} catch (const std::exception &error) {
    return std::fprintf(stderr, "%s\n", error.what()), 2;
}
