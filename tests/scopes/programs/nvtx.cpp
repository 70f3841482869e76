// A program that uses NVTX as its C++ header has it.
#include <nvtx3/nvtx3.hpp>

#include <thread>
#include <utility>

struct training {
    static constexpr char const *name{"training"};
};

struct step_name {
    static constexpr char const *message{"registered step"};
};

static void function()
{
    NVTX3_FUNC_RANGE_IN(training);
}

int main()
{
    nvtx3::scoped_range whole{"whole"};
    {
        const auto &step = nvtx3::registered_string_in<training>::get<step_name>();
        nvtx3::scoped_range_in<training> range{
            nvtx3::event_attributes{step, nvtx3::payload{int64_t{7}}, nvtx3::rgb{0x76, 0xb9, 0}}};
        function();
    }
    nvtx3::unique_range moved{"moved to another thread"};
    std::thread([range = std::move(moved)] {}).join();
    nvtx3::mark("done");
}
