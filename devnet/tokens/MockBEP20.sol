// SPDX-License-Identifier: MIT
// Test token shaped like USDT on BNB Smart Chain: a plain BEP20 with 18 decimals whose functions return a bool.
// Nobody can pause it or refuse an address, and it takes no fee.
pragma solidity ^0.8.20;
contract MockBEP20 {
    string public name = "Tether USD";
    string public symbol = "USDT";
    uint8 public constant decimals = 18;
    uint256 public totalSupply;
    address public getOwner;
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;
    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);
    constructor(uint256 supply) { getOwner = msg.sender; totalSupply = supply; balanceOf[msg.sender] = supply; }
    function _move(address f, address t, uint256 v) private returns (bool) {
        require(f != address(0) && t != address(0), "BEP20: transfer of the zero address");
        require(balanceOf[f] >= v, "BEP20: transfer amount exceeds balance");
        balanceOf[f] -= v; balanceOf[t] += v;
        emit Transfer(f, t, v);
        return true;
    }
    function transfer(address to, uint256 value) external returns (bool) { return _move(msg.sender, to, value); }
    function transferFrom(address from, address to, uint256 value) external returns (bool) {
        require(allowance[from][msg.sender] >= value, "BEP20: transfer amount exceeds allowance");
        allowance[from][msg.sender] -= value;
        return _move(from, to, value);
    }
    function approve(address spender, uint256 value) external returns (bool) {
        allowance[msg.sender][spender] = value; emit Approval(msg.sender, spender, value);
        return true;
    }
}
