// An exported kernel, loaded by name: C++17, this header alone, Linux and macOS.
//
//     dyn::Kernel law("kernels", "computed_torque_arm7");
//     law.input("q", q, 7);       // pointers are kept: bind once, run often
//     law.output("tau", tau, 7);
//     if (law.run()) ...          // no allocation, no lock, no system call
//
// What the library says of itself is checked when it is loaded: version of the
// interface, size of its numbers, names and sizes of its ports, hash of the robot.
#ifndef DYN_KERNEL_HPP
#define DYN_KERNEL_HPP

#include <dlfcn.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#ifndef DYN_INTERFACE_ABI  // as in every exported header
#define DYN_INTERFACE_ABI 1
typedef int64_t (*dyn_run)(const void *const *in, void *const *out, void *scratch);
typedef int64_t (*dyn_run_batch)(const void *const *in, const int64_t *strides,
    void *const *out, int64_t *status, int64_t first, int64_t last, void *scratch);

typedef struct dyn_port {
    const char *name; /* as in Python */
    const char *c_name; /* as an identifier */
    const char *unit; /* SI; alternatives by a bar, parts by a semicolon */
    const char *kind; /* position, velocity, joint_force, ..., plain */
    const char *meaning; /* a short noun phrase */
    const char *axes; /* what each axis counts: nq, nv, nb, or - for others */
    const int64_t *shape; /* of n_axes sizes, row-major */
    int64_t n_axes; /* 0 for a number */
    int64_t size; /* number of entries */
} dyn_port;

typedef struct dyn_interface {
    int64_t abi; /* DYN_INTERFACE_ABI of the library */
    const char *prefix; /* name of the functions */
    const char *solver; /* name */
    const char *problem; /* name */
    const char *robot; /* name */
    const char *model_hash; /* 16 hexadecimal digits of the robot */
    const char *kernel_hash; /* 16 hexadecimal digits of algorithm and ports */
    const char *library; /* version of dyn_ros */
    int64_t real_bytes; /* 8 for double, 4 for float */
    int64_t finite; /* 1 where inputs and results are checked for NaN */
    int64_t n_inputs;
    int64_t n_outputs;
    const dyn_port *inputs; /* in the order of the call */
    const dyn_port *outputs;
    int64_t n_statuses;
    const char *const *statuses; /* what status k says stands at k - 1 */
    int64_t n_positions; /* nq */
    const char *const *positions; /* names of the coordinates */
    const char *const *position_units; /* rad, m, or 1 in a quaternion */
    int64_t n_velocities; /* nv */
    const char *const *velocities;
    const char *const *velocity_units; /* rad or m */
    int64_t n_bodies; /* nb */
    const char *const *bodies;
    int64_t alignment; /* of scratch memory [bytes] */
    int64_t scratch; /* [bytes] */
    int64_t batch_scratch; /* [bytes] */
    int64_t lanes; /* rows that the batch computes at once */
    dyn_run run; /* one state */
    dyn_run_batch batch; /* rows; null where it is not exported */
} dyn_interface;
#endif

namespace dyn {

struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class Kernel {
public:
    // folder: where lib<name>.so lies. model_hash: refuse another robot; "": any.
    Kernel(const std::string &folder, const std::string &name,
           const std::string &model_hash = "") {
        const std::string path = folder + "/lib" + name + ".so";
        library_.reset(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
        if (!library_) throw Error(unloaded(path, folder, name));
        about_ = static_cast<const dyn_interface *>(
            dlsym(library_.get(), (name + "_interface").c_str()));
        if (!about_) throw Error(path + " has no table " + name + "_interface");
        if (about_->abi != DYN_INTERFACE_ABI)
            throw Error(path + " has interface " + std::to_string(about_->abi) +
                        "; valid: " + std::to_string(DYN_INTERFACE_ABI));
        if (about_->real_bytes != sizeof(double))
            throw Error(path + " computes with float; valid: dtype='float64'");
        if (!model_hash.empty() && model_hash != about_->model_hash)
            throw Error(path + " is of robot " + about_->model_hash + "; valid: " +
                        model_hash);
        in_.assign(std::size_t(about_->n_inputs), nullptr);
        out_.assign(std::size_t(about_->n_outputs), nullptr);
        memory_.resize(std::size_t(about_->scratch + about_->alignment));
        auto start = reinterpret_cast<std::uintptr_t>(memory_.data());
        auto size = std::uintptr_t(about_->alignment);
        scratch_ = memory_.data() + (size - start % size) % size;
    }

    const dyn_interface &about() const { return *about_; }

    // Size of an input or output; an Error lists the names where there is none.
    std::size_t size(const std::string &port) const {
        for (auto side : {false, true}) {
            std::size_t k = find(port, side);
            if (k < count(side)) return std::size_t(ports(side)[k].size);
        }
        throw Error(unknown(port, false) + " | " + unknown(port, true));
    }

    void input(const std::string &port, const double *from, std::size_t size) {
        in_[place(port, size, false)] = from;
    }

    void output(const std::string &port, double *to, std::size_t size) {
        out_[place(port, size, true)] = to;
    }

    // Throw unless every port is bound: call it once, before the loop.
    void check() const {
        for (std::size_t k = 0; k < in_.size(); ++k)
            if (!in_[k]) throw Error(std::string("input ") + ports(false)[k].name +
                                     " of " + about_->prefix + " is not bound");
        for (std::size_t k = 0; k < out_.size(); ++k)
            if (!out_[k]) throw Error(std::string("output ") + ports(true)[k].name +
                                      " of " + about_->prefix + " is not bound");
    }

    // One state; 0, or a status, with NaN in all outputs. One thread at a time.
    std::int64_t run() noexcept {
        return about_->run(in_.data(), out_.data(), scratch_);
    }

    // Place of a port in the tables, to bind it again in a loop without a look-up.
    std::size_t place(const std::string &port, std::size_t size, bool out) const {
        const std::size_t k = find(port, out);
        if (k == count(out)) throw Error(unknown(port, out));
        if (std::size_t(ports(out)[k].size) != size)
            throw Error(about_->prefix + std::string(": ") + port + " has " +
                        std::to_string(ports(out)[k].size) + " numbers, not " +
                        std::to_string(size));
        return k;
    }

    void rebind(std::size_t input, const double *from, std::size_t output,
                double *to) noexcept {
        in_[input] = from;
        out_[output] = to;
    }

private:
    struct Close {
        void operator()(void *library) const { dlclose(library); }
    };

    static std::string unloaded(const std::string &path, const std::string &folder,
                                const std::string &name) {
        const char *said = dlerror();
        const std::string text = said ? said : "the library cannot be loaded";
        const std::string export_it = "; valid: dyn export SOLVER ROBOT " + folder +
                                      " --form shared";
        if (!std::ifstream(path))
            return folder + " has no lib" + name + ".so" + export_it;
        // glibc says of another processor that there is no such file.
        if (text.rfind(path, 0) == 0 && text.find(std::strerror(ENOENT)) != text.npos)
            return path + " is there, but not for this machine" + export_it +
                   " and the --target of this machine";
        return text;
    }

    const dyn_port *ports(bool out) const {
        return out ? about_->outputs : about_->inputs;
    }

    std::size_t count(bool out) const {
        return std::size_t(out ? about_->n_outputs : about_->n_inputs);
    }

    std::size_t find(const std::string &port, bool out) const {
        std::size_t k = 0;
        while (k < count(out) && port != ports(out)[k].name) ++k;
        return k;
    }

    std::string unknown(const std::string &port, bool out) const {
        std::string text = std::string(about_->prefix) + " has no " +
                           (out ? "output " : "input ") + port + "; valid:";
        for (std::size_t k = 0; k < count(out); ++k)
            text += std::string(k ? ", " : " ") + ports(out)[k].name;
        return text;
    }

    std::unique_ptr<void, Close> library_;
    const dyn_interface *about_ = nullptr;
    std::vector<const void *> in_;
    std::vector<void *> out_;
    std::vector<unsigned char> memory_;
    unsigned char *scratch_ = nullptr;
};

}  // namespace dyn

#endif
